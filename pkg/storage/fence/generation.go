// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
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

// progressInterval is how often etcd is asked for the progress of a watch. It
// answers at once, but not at all while the watch is catching up with history.
const progressInterval = 20 * time.Millisecond

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
	f.generation.revision.Store(until)
	written, err = findWrite(ctx, client, key, value, since, until)
	if err != nil {
		return 0, 0, fmt.Errorf("read the history of the key: %w", err)
	}
	return written, until, nil
}

// findWrite returns the revision, after since and before until, that created the
// key with the value, or 0.
func findWrite(ctx context.Context, watcher clientv3.Watcher, key string, value []byte, since, until int64) (int64, error) {
	ctx, cancel := context.WithCancel(ownStream(clientv3.WithRequireLeader(ctx)))
	defer cancel()
	events := watcher.Watch(ctx, key, clientv3.WithRev(since+1))
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case response, ok := <-events:
			if !ok {
				return 0, context.Cause(ctx)
			}
			if err := response.Err(); err != nil {
				return 0, err
			}
			for _, event := range response.Events {
				if event.IsCreate() && bytes.Equal(event.Kv.Value, value) {
					return event.Kv.ModRevision, nil
				}
			}
			// All events up to the revision of a progress notification come before it: it
			// was requested after the watch has begun.
			if response.IsProgressNotify() && response.Header.Revision >= until {
				return 0, nil
			}
		case <-ticker.C:
			if err := watcher.RequestProgress(ctx); err != nil {
				return 0, err
			}
		}
	}
}

var streams atomic.Int64

// ownStream returns a context that selects a stream of etcd for one watch. Etcd sends
// progress to all watches of a stream, and may send what was requested for another watch
// before the events of one that has just begun.
func ownStream(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "source", fmt.Sprintf("create-%d", streams.Add(1)))
}
