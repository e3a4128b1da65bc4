// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/unreadable"
)

const (
	// maxPending is the size in bytes of the events that a watch may be behind.
	maxPending = 4 << 20
	// eventSize is about the size in memory of an event without its values.
	eventSize = 500
)

// boundedWatcher ends the watches of clients that do not read. The library's watch cache
// ends such a watch, too. But a watch that is not served from it is one of etcd, whose
// client keeps what is not read, without a limit.
type boundedWatcher struct{ clientv3.Watcher }

// Watch watches keys. A watch that is too far behind ends with the error ErrCompacted, of
// which the library makes the code 410, and clients list again. The watches of watch caches
// are not bounded.
func (w boundedWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if !unreadable.IsWithoutCache(ctx) {
		return w.Watcher.Watch(ctx, key, opts...)
	}
	inner, cancel := context.WithCancel(ctx)
	b := &boundedWatch{from: w.Watcher.Watch(inner, key, opts...), to: make(chan clientv3.WatchResponse)}
	go func() {
		defer close(b.to)
		defer cancel()
		b.run(ctx, func() {
			cancel()
			klog.FromContext(ctx).V(1).Info("Ending a watch that its client does not read", "key", key)
		})
	}()
	return b.to
}

// boundedWatch is a watch of etcd with the responses that were not read yet.
type boundedWatch struct {
	from    clientv3.WatchChan
	to      chan clientv3.WatchResponse
	pending []clientv3.WatchResponse
	size    int // of pending
}

// run passes responses on until the watch ends. If it is too far behind, run calls end, and
// passes on an error in place of what is pending.
func (b *boundedWatch) run(ctx context.Context, end func()) {
	for b.from != nil || len(b.pending) > 0 {
		var to chan<- clientv3.WatchResponse
		var next clientv3.WatchResponse
		if len(b.pending) > 0 {
			to, next = b.to, b.pending[0]
		}
		select {
		case response, ok := <-b.from:
			if !ok {
				b.from = nil
				continue
			}
			b.pending, b.size = append(b.pending, response), b.size+sizeOf(&response)
			// A single response may be larger.
			if b.size > maxPending && len(b.pending) > 1 {
				b.from, b.pending = nil, []clientv3.WatchResponse{{Canceled: true, CompactRevision: 1}}
				end()
			}
		case to <- next:
			b.pending[0] = clientv3.WatchResponse{}
			b.pending, b.size = b.pending[1:], b.size-sizeOf(&next)
		case <-ctx.Done():
			return
		}
	}
}

// sizeOf returns about how much memory a response takes.
func sizeOf(response *clientv3.WatchResponse) int {
	size := eventSize
	for _, event := range response.Events {
		size += eventSize + len(event.Kv.GetValue()) + len(event.PrevKv.GetValue())
	}
	return size
}
