// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// createGeneration makes it possible to determine the outcome of a create that
// etcd did not answer.
//
// An update or a delete compares the revision of the object, which never recurs, so
// it is carried out at most once. A create only compares that the key does not
// exist: a member may accept it, hang, and carry it out after another try has
// created the object and a client has deleted it. So all creates compare the
// revision of one key, the generation key, which need not exist. A write to the key
// begins a new generation, and creates of older generations fail from then on.
// Servers read the new generation when a create fails, as they do with a changed
// Namespace.
type createGeneration struct {
	key      string
	revision atomic.Int64
}

// current returns a comparison that holds if the generation is the one that began
// at the revision.
func (g *createGeneration) current(revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(g.key), "=", revision)
}

// read returns the operation that reads the generation key.
func (g *createGeneration) read() clientv3.Op { return clientv3.OpGet(g.key) }

// update sets the generation to the result of read.
func (g *createGeneration) update(kv *mvccpb.KeyValue) {
	g.revision.Store(kv.GetModRevision()) // 0 if the key does not exist
}

// ResolveCreate determines whether a create that etcd did not answer, and that was
// sent after the revision since, has written the value to the key. It returns the
// revision that wrote the value, or 0 if the create was not carried out and will
// not be. It begins a new generation, at the returned revision until, so that all
// creates in flight, from any server, are tried again. If it returns an error, the
// outcome is unknown.
//
// The create was carried out, if at all, after since and before until.
// ResolveCreate reads the history of the key between the two, and returns an error
// if it has been compacted. etcd must support progress requests for watches.
func (f *Fence) ResolveCreate(ctx context.Context, client *clientv3.Client, key string, value []byte, since int64) (written, until int64, err error) {
	response, err := client.Put(ctx, f.generation.key, "")
	if err != nil {
		return 0, 0, fmt.Errorf("begin a new generation of creates: %w", err)
	}
	until = response.Header.Revision
	if since >= until {
		return 0, 0, fmt.Errorf("etcd is at revision %d, but was at %d before: its data was replaced", until, since)
	}
	f.generation.revision.Store(until)
	if written, err = findCreate(ctx, client, key, value, since, until); err != nil {
		return 0, 0, err
	}
	return written, until, nil
}
