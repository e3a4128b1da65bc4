// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/klog/v2"
)

const (
	// maxPending is the size in bytes of the events that a watch may be behind.
	maxPending = 4 << 20
	// maxResponse is the size in bytes of a response of etcd with several revisions: it sends up
	// to 1,000 of them when a watch begins to catch up.
	maxResponse = 32 << 20
	// maxSent is the size in bytes of the events that the library may have, together with
	// the next response of etcd. It is less because decoded objects are larger.
	maxSent = 1 << 20
	// eventSize is about the size in memory of an event without its values.
	eventSize = 500
)

// boundedWatcher ends the watches of clients that do not read. The library's watch cache
// ends such a watch, too. But a watch that is not served from it is one of etcd, whose
// client keeps what is not read, without a limit, and behind it the library keeps 200 events
// of any size.
type boundedWatcher struct{ clientv3.Watcher }

// Watch watches keys. A watch that is too far behind ends with the code 410, and clients list
// again. The watches of watch caches are not bounded.
func (w boundedWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	flow := flowOf(ctx)
	if flow == nil {
		return w.Watcher.Watch(ctx, key, opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &boundedWatch{from: w.Watcher.Watch(ctx, key, opts...), to: make(chan clientv3.WatchResponse), passed: flow.passed}
	go func() {
		defer close(b.to)
		defer cancel()
		if !b.run(ctx) {
			flow.End("the watch is too far behind, because its client does not read fast enough")
			klog.FromContext(ctx).V(1).Info("Ending a watch that its client does not read", "key", key)
		}
	}()
	return b.to
}

// boundedWatch is a watch of etcd with the responses that were not read yet. It sends the
// library responses up to maxSent, then a mark, and more only when the mark has passed.
type boundedWatch struct {
	from    clientv3.WatchChan
	to      chan clientv3.WatchResponse
	passed  <-chan struct{}
	pending []clientv3.WatchResponse
	size    int // of pending
	sent    int // the size of what was sent since the last mark
	marked  bool
}

// run passes responses on until the watch ends, and reports whether it was not too far
// behind.
func (b *boundedWatch) run(ctx context.Context) bool {
	for b.from != nil || len(b.pending) > 0 {
		var to chan<- clientv3.WatchResponse
		var next clientv3.WatchResponse
		switch {
		case b.marked:
		case b.sent >= maxSent:
			to, next = b.to, mark()
		case len(b.pending) > 0:
			to, next = b.to, b.pending[0]
		}
		select {
		case response, ok := <-b.from:
			if !ok {
				b.from = nil
				continue
			}
			b.pending, b.size = append(b.pending, response), b.size+sizeOf(&response)
			if b.size > maxPending && len(b.pending) > 1 || b.size > maxResponse && severalRevisions(&response) {
				return false
			}
		case to <- next:
			if b.sent >= maxSent {
				b.marked = true
				continue
			}
			size := sizeOf(&next)
			b.pending[0] = clientv3.WatchResponse{}
			b.pending, b.size, b.sent = b.pending[1:], b.size-size, b.sent+size
		case <-b.passed:
			b.marked, b.sent = false, 0
		case <-ctx.Done():
			return true
		}
	}
	return true
}

// severalRevisions reports whether a response has events of several revisions. Those of one
// revision have no limit, because a client could never get them.
func severalRevisions(response *clientv3.WatchResponse) bool {
	events := response.Events
	return len(events) > 0 && events[0].Kv.ModRevision != events[len(events)-1].Kv.ModRevision
}

// sizeOf returns about how much memory a response takes.
func sizeOf(response *clientv3.WatchResponse) int {
	size := eventSize
	for _, event := range response.Events {
		size += eventSize + len(event.Kv.GetValue()) + len(event.PrevKv.GetValue())
	}
	return size
}
