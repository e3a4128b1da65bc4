// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/etcdwatch"
)

// progressInterval is how often etcd is asked for the progress of a watch. It
// answers at once, but not at all while the watch is catching up with history.
const progressInterval = 20 * time.Millisecond

// historyTimeout is how long one watch may take to read the history of a key. The member may
// answer and yet not have what the others have: its disk hangs, or it is being defragmented.
// Another attempt can get another member.
const historyTimeout = 4 * time.Second

// ResolveUpdate determines whether an update that etcd did not answer, and that was sent
// after the revision since, has written the value to the key. It returns the revision that
// wrote the value, or 0 if the update was not carried out. Another write must have changed
// the key after the revision that the update compares, and not after until: so the update
// will not be carried out later.
//
// ResolveUpdate reads the history of the key between the two revisions, and returns an
// error if it has been compacted. etcd must support progress requests for watches.
func ResolveUpdate(ctx context.Context, client *clientv3.Client, key string, value []byte, since, until int64) (written int64, err error) {
	err = readHistory(ctx, client, key, since, until, func(event *clientv3.Event) (stop bool) {
		if bytes.Equal(event.Kv.Value, value) {
			written = event.Kv.ModRevision
		}
		return true // the first write is the update, or one that it conflicts with
	})
	return written, err
}

// ResolveFull determines whether a write that etcd has answered with the error that it has no
// space was carried out. It was sent after the revision since, and compares that the key is at
// the expected revision, or does not exist if that is 0. A nil value is a delete. ResolveFull
// returns a revision at which the write was carried out, or 0 if it was not.
//
// If etcd was written to after since, ResolveFull reads the key and, unless the write is a
// delete, its history. It returns an error if that has been compacted. etcd must support
// progress requests for watches.
func ResolveFull(ctx context.Context, client *clientv3.Client, key string, value []byte, expectedRevision, since int64) (written int64, err error) {
	response, err := client.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("read the key: %w", err)
	}
	until := response.Header.Revision
	switch {
	case until <= since:
		return 0, nil
	case value == nil:
		// Another client may have deleted it, which is treated alike.
		if len(response.Kvs) == 0 || response.Kvs[0].CreateRevision > expectedRevision {
			return until, nil
		}
		return 0, nil
	case expectedRevision == 0:
		return findCreate(ctx, client, key, value, since, until)
	}
	return ResolveUpdate(ctx, client, key, value, since, until)
}

// findCreate returns the revision after since and up to until at which the key was created with
// the value, or 0.
func findCreate(ctx context.Context, client *clientv3.Client, key string, value []byte, since, until int64) (written int64, err error) {
	err = readHistory(ctx, client, key, since, until, func(event *clientv3.Event) (stop bool) {
		if event.IsCreate() && bytes.Equal(event.Kv.Value, value) {
			written = event.Kv.ModRevision
		}
		return written != 0
	})
	return written, err
}

var errWatchClosed = errors.New("the watch was closed")

// readHistory calls visit with each event of a key after the revision since and up to
// until, in order, until visit returns true. It returns rpctypes.ErrTimeout if the member does not
// send them.
func readHistory(ctx context.Context, client *clientv3.Client, key string, since, until int64, visit func(*clientv3.Event) (stop bool)) (err error) {
	ctx, cancel := context.WithTimeoutCause(clientv3.WithRequireLeader(ctx), historyTimeout, rpctypes.ErrTimeout)
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the history of the key: %w", cmp.Or(context.Cause(ctx), err))
		}
		cancel()
	}()
	watcher := etcdwatch.Open(ctx, client)
	events := watcher.Watch(ctx, key, clientv3.WithRev(since+1))
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case response, ok := <-events:
			if !ok {
				return errWatchClosed
			}
			if err := response.Err(); err != nil {
				return err
			}
			for _, event := range response.Events {
				if event.Kv.ModRevision > until || visit(event) {
					return nil
				}
			}
			// All events up to the revision of a progress notification come before it: it
			// was requested after the watch has begun.
			if response.IsProgressNotify() && response.Header.Revision >= until {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if err := watcher.RequestProgress(ctx); err != nil {
				return err
			}
		}
	}
}
