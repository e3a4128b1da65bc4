// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/klog/v2"
)

// omitted is the previous value in the events of a watch cache.
var omitted = &mvccpb.KeyValue{Value: []byte("\x00omitted")}

// IsOmitted reports whether a value stands for the previous value of an object in an event of a
// watch cache, for which it is not read from etcd.
func IsOmitted(value []byte) bool { return bytes.Equal(value, omitted.Value) }

// previousWatcher ensures that events have previous values, without which the library ends a
// watch with the code 500.
//
// A watch cache has the previous objects itself. For each event, etcd reads the previous value
// in the goroutine that sends all events of a stream, with locks for which writes wait. So the
// watch of a cache does not ask for them, and its events have a value that IsOmitted.
//
// For other watches, previousWatcher adds the values that etcd leaves out. It can send the first
// events of a watch before it records that the watch wants previous values. And it leaves out
// what is compacted.
type previousWatcher struct {
	clientv3.Watcher
	kv clientv3.KV
}

// Watch watches keys. A watch whose previous values are compacted ends as one from a compacted
// revision does.
func (w previousWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	switch {
	case !op.IsPrevKV():
		return w.Watcher.Watch(ctx, key, opts...)
	case flowOf(ctx) == nil:
		return forward(ctx, w.Watcher.Watch(ctx, key, withoutPrevious(op)...), omitPrevious)
	}
	return forward(ctx, w.Watcher.Watch(ctx, key, opts...), func(response *clientv3.WatchResponse) bool {
		err := w.addPrevious(ctx, response.Events)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted):
			*response = clientv3.WatchResponse{Header: response.Header, Canceled: true, CompactRevision: response.Header.Revision}
		case err != nil && ctx.Err() == nil: // the library ends the watch
			klog.FromContext(ctx).Error(err, "Unable to add previous values to the events of a watch", "key", key)
		}
		return true
	})
}

// withoutPrevious returns the options of a watch of the library, except that for previous values,
// which no other option revokes.
func withoutPrevious(op clientv3.Op) []clientv3.OpOption {
	opts := []clientv3.OpOption{clientv3.WithRev(op.Rev())}
	if end := op.RangeBytes(); end != nil {
		opts = append(opts, clientv3.WithRange(string(end)))
	}
	if op.IsProgressNotify() {
		opts = append(opts, clientv3.WithProgressNotify())
	}
	return opts
}

// omitPrevious sets the previous values in the events of a watch cache.
func omitPrevious(response *clientv3.WatchResponse) bool {
	for _, event := range response.Events {
		if !event.IsCreate() {
			event.PrevKv = omitted
		}
	}
	return true
}

// addPrevious adds previous values to the events that need one and have none.
func (w previousWatcher) addPrevious(ctx context.Context, events []*clientv3.Event) error {
	for _, event := range events {
		if event.IsCreate() || event.PrevKv != nil {
			continue
		}
		key, revision := string(event.Kv.Key), event.Kv.ModRevision-1
		response, err := w.kv.Get(ctx, key, clientv3.WithRev(revision))
		if err != nil {
			return fmt.Errorf("read %s at revision %d: %w", key, revision, err)
		}
		if len(response.Kvs) > 0 {
			event.PrevKv = response.Kvs[0]
		}
	}
	return nil
}
