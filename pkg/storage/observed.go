// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/storage/compaction"
)

// observedKV records the revisions of the responses to reads and transactions, and how many
// bytes of values the transactions write.
type observedKV struct {
	clientv3.KV
	reached *await.Revision
	written *compaction.Meter
}

// Get implements clientv3.KV.
func (kv observedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := kv.KV.Get(ctx, key, opts...)
	if err == nil {
		kv.reached.Reach(response.Header.Revision)
	}
	return response, err
}

// Txn implements clientv3.KV.
func (kv observedKV) Txn(ctx context.Context) clientv3.Txn {
	return observedTxn{Txn: kv.KV.Txn(ctx), kv: kv}
}

type observedTxn struct {
	clientv3.Txn
	kv    observedKV
	bytes int // of the values to write if the conditions are met
}

// If implements clientv3.Txn.
func (t observedTxn) If(compare ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(compare...)
	return t
}

// Then implements clientv3.Txn.
func (t observedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for i := range ops {
		t.bytes += len(ops[i].ValueBytes())
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t observedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

// Commit implements clientv3.Txn.
func (t observedTxn) Commit() (*clientv3.TxnResponse, error) {
	response, err := t.Txn.Commit()
	if err == nil {
		t.kv.reached.Reach(response.Header.Revision)
		if response.Succeeded {
			t.kv.written.Add(t.bytes)
		}
	}
	return response, err
}
