// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// reachedRevision is the latest revision in a response of etcd to this server. The compactor of
// each server asks etcd as often as one of them compacts, and then up to the revision of the time
// before. So etcd has the history after it, also for a server that gets no requests.
type reachedRevision struct{ latest atomic.Int64 }

// Get returns the revision, or 0 if there was no response.
func (r *reachedRevision) Get() int64 { return r.latest.Load() }

func (r *reachedRevision) observe(header *etcdserverpb.ResponseHeader) {
	for {
		latest := r.latest.Load()
		if latest >= header.Revision || r.latest.CompareAndSwap(latest, header.Revision) {
			return
		}
	}
}

// observedKV records the revisions of the responses to reads and transactions.
type observedKV struct {
	clientv3.KV
	reached *reachedRevision
}

// Get implements clientv3.KV.
func (kv observedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := kv.KV.Get(ctx, key, opts...)
	if err == nil {
		kv.reached.observe(response.Header)
	}
	return response, err
}

// Txn implements clientv3.KV.
func (kv observedKV) Txn(ctx context.Context) clientv3.Txn {
	return observedTxn{kv.KV.Txn(ctx), kv.reached}
}

type observedTxn struct {
	clientv3.Txn
	reached *reachedRevision
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
		t.reached.observe(response.Header)
	}
	return response, err
}
