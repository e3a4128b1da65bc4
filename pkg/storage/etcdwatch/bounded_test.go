// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// sendingWatcher is a watcher whose responses the test sends.
type sendingWatcher struct {
	clientv3.Watcher
	responses chan clientv3.WatchResponse
	ctx       context.Context
}

func (w *sendingWatcher) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	w.ctx = ctx
	return w.responses
}

// responseOf returns a response with one event at each revision.
func responseOf(size int, revisions ...int64) clientv3.WatchResponse {
	var response clientv3.WatchResponse
	for _, revision := range revisions {
		response.Events = append(response.Events, &clientv3.Event{
			Kv:     &mvccpb.KeyValue{ModRevision: revision, Value: make([]byte, size)},
			PrevKv: &mvccpb.KeyValue{Value: make([]byte, size)},
		})
	}
	return response
}

// boundedTest starts a watch of a boundedWatcher. The test sends responses, and ended is true
// when the watch has ended because it is too far behind.
func boundedTest(t *testing.T) (inner *sendingWatcher, read clientv3.WatchChan, flow *Flow, ended *atomic.Bool) {
	ended = &atomic.Bool{}
	flow = NewFlow(func(string) { ended.Store(true) })
	inner = &sendingWatcher{responses: make(chan clientv3.WatchResponse)}
	read = boundedWatcher{inner}.Watch(WithFlow(t.Context(), flow), "key")
	return inner, read, flow, ended
}

// send sends a response, and reports whether the watch was not canceled.
func (w *sendingWatcher) send(response clientv3.WatchResponse) bool {
	select {
	case w.responses <- response:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// TestBoundedWatch sends responses that the library takes only afterwards.
func TestBoundedWatch(t *testing.T) {
	for name, test := range map[string]struct {
		responses, revisions, size int
		want                       int // events that are read
		ended                      bool
	}{
		"few":                              {10, 1, 10, 10, false},
		"many":                             {maxPending / eventSize, 1, 10, 0, true},
		"one is larger":                    {1, 1, maxResponse, 1, false},
		"two are":                          {2, 1, maxPending / 3, 0, true},
		"revisions in a response":          {1, 10, maxPending / 30, 10, false},
		"revisions in a response are more": {1, 10, maxPending / 15, 10, false},
		"more than a client catches up":    {1, 10, maxResponse / 15, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			inner, read, flow, ended := boundedTest(t)
			last := int64(0)
			for range test.responses {
				var revisions []int64
				for range test.revisions {
					last++
					revisions = append(revisions, last)
				}
				if !inner.send(responseOf(test.size, revisions...)) {
					break
				}
			}
			close(inner.responses)
			got := 0
			for response := range read {
				if response.IsProgressNotify() {
					flow.passed <- struct{}{}
				}
				for _, event := range response.Events {
					if got++; event.Kv.ModRevision != int64(got) {
						t.Errorf("event %d has revision %d", got, event.Kv.ModRevision)
					}
				}
			}
			if got != test.want || ended.Load() != test.ended {
				t.Errorf("read %d events, ended: %t; want %d, %t", got, ended.Load(), test.want, test.ended)
			}
		})
	}
}

// TestBoundedLibrary has a library that takes all that it is sent, as its buffers do, and
// whose client reads or does not.
func TestBoundedLibrary(t *testing.T) {
	const size, responses = 100_000, 200
	for name, reads := range map[string]bool{"a client that reads": true, "a client that does not": false} {
		t.Run(name, func(t *testing.T) {
			inner, read, flow, ended := boundedTest(t)
			sent, got, bytes := 0, 0, 0
			for open := true; open; {
				to := inner.responses
				if sent == responses || reads && got < sent { // is never behind
					to = nil
				}
				select {
				case to <- responseOf(size, int64(sent+1)):
					if sent++; sent == responses {
						close(inner.responses)
					}
				case response, ok := <-read:
					if open = ok; !ok {
						break
					}
					if response.IsProgressNotify() {
						if reads {
							flow.passed <- struct{}{}
						}
						break
					}
					got++
					bytes += sizeOf(&response)
				}
			}
			if most := 1<<20 + 2*(size+eventSize); !reads && bytes > most {
				t.Errorf("the library got %d bytes, want at most %d", bytes, most)
			}
			if reads && got != responses || ended.Load() == reads {
				t.Errorf("read %d events, ended: %t", got, ended.Load())
			}
		})
	}
}
