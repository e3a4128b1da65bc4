// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/await"
)

// observedKV records the revisions of the responses to reads and transactions.
type observedKV struct {
	clientv3.KV
	reached *await.Revision
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
	return observedTxn{kv.KV.Txn(ctx), kv.reached}
}

type observedTxn struct {
	clientv3.Txn
	reached *await.Revision
}

// If implements clientv3.Txn.
func (t observedTxn) If(compare ...clientv3.Cmp) clientv3.Txn {
	return observedTxn{t.Txn.If(compare...), t.reached}
}

// Then implements clientv3.Txn.
func (t observedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	return observedTxn{t.Txn.Then(ops...), t.reached}
}

// Else implements clientv3.Txn.
func (t observedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	return observedTxn{t.Txn.Else(ops...), t.reached}
}

// Commit implements clientv3.Txn.
func (t observedTxn) Commit() (*clientv3.TxnResponse, error) {
	response, err := t.Txn.Commit()
	if err == nil {
		t.reached.Reach(response.Header.Revision)
	}
	return response, err
}
