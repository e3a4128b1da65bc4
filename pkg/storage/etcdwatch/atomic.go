// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

type continuedKey struct{}

// WithContinued returns a context for the library's part of a watch that continues from a
// revision that its client has, and does not begin with all objects, or now.
func WithContinued(ctx context.Context) context.Context {
	return context.WithValue(ctx, continuedKey{}, true)
}

func isContinued(ctx context.Context) bool {
	continued, _ := ctx.Value(continuedKey{}).(bool)
	return continued
}

// atomicWatcher is for objects of which one transaction writes several. A watch that continues
// from a revision gets all events of that revision again if it has several, because the client
// may have got only some of them.
type atomicWatcher struct{ clientv3.Watcher }

// Watch watches keys from a revision.
func (w atomicWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	last := clientv3.OpGet(key, opts...).Rev() - 1 // that the client has
	if last <= 0 || !isContinued(ctx) {
		return w.Watcher.Watch(ctx, key, opts...)
	}
	inner := w.Watcher.Watch(ctx, key, append(slices.Clip(opts), clientv3.WithRev(last))...)
	return forward(ctx, inner, func(response *clientv3.WatchResponse) bool {
		// etcd sends the events of a revision in one response.
		events := response.Events
		if len(events) > 0 && events[0].Kv.ModRevision == last && (len(events) == 1 || events[1].Kv.ModRevision != last) {
			response.Events = events[1:]
			return len(events) > 1 // without events, it would be a progress notification
		}
		return true
	})
}
