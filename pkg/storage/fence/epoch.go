// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// epoch makes sure that a create that etcd did not answer is not carried out
// later. A member may take a request, stand still, and go on when the object has
// been created by another try and deleted again: the object would come back.
// Unlike an update or a delete, which name a revision that never returns, a
// create only names that there is nothing.
//
// So all creates, of all servers, compare the revision of one key, which need not
// exist, and a write to the key makes those that are still under way fail. Their
// servers learn of it like of a changed Namespace, and try again.
type epoch struct {
	key      string
	revision atomic.Int64
}

// unchanged is what a create compares.
func (e *epoch) unchanged() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(e.key), "=", e.revision.Load())
}

// read is how a create finds out why it failed.
func (e *epoch) read() clientv3.Op { return clientv3.OpGet(e.key) }

// learn takes what was read.
func (e *epoch) learn(kv *mvccpb.KeyValue) {
	e.revision.Store(kv.GetModRevision()) // 0 if the key does not exist
}

// end begins a new epoch.
func (e *epoch) end(ctx context.Context, kv clientv3.KV) error {
	response, err := kv.Put(ctx, e.key, "")
	if err != nil {
		return err
	}
	e.revision.Store(response.Header.Revision)
	return nil
}

// EndEpoch makes all creates fail that are under way, from this server and any
// other, also those that nobody waits for any more. The others try again.
func (f *Fence) EndEpoch(ctx context.Context, kv clientv3.KV) error { return f.epoch.end(ctx, kv) }
