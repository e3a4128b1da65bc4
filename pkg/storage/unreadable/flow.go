// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"math"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/runtime"
)

// Flow belongs to a watch that is not that of a watch cache. It connects what reads from
// etcd with what the client reads. Between them is the library, which buffers some hundred
// events, however large they are.
type Flow struct {
	// Passed receives a value when all that was sent to the library before Mark has left it.
	// Its capacity is 1, for one Mark at a time.
	Passed chan struct{}
	// End ends the watch with the error 410, and drops what was not read yet.
	End func(reason string)
}

type flowKey struct{}

// WithFlow returns a context for the library's part of a watch.
func WithFlow(ctx context.Context, flow *Flow) context.Context {
	return context.WithValue(ctx, flowKey{}, flow)
}

// FlowOf returns the Flow of a context, or nil if the watch is that of a watch cache.
func FlowOf(ctx context.Context) *Flow {
	flow, _ := ctx.Value(flowKey{}).(*Flow)
	return flow
}

// markRevision is a revision that etcd does not reach.
const markRevision = math.MaxInt64

// Mark returns a progress notification, which no client gets. The library keeps it in the
// order of the events, and unlike those, no selector leaves it out.
func Mark() clientv3.WatchResponse {
	return clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: markRevision}}
}

// passMark reports whether the object of a bookmark is that of Mark. If it is, Passed receives
// a value.
func (w *watcher) passMark(bookmark runtime.Object) bool {
	if w.flow == nil {
		return false
	}
	revision, err := w.store.config.Versioner.ObjectResourceVersion(bookmark)
	if err != nil || revision != markRevision {
		return false
	}
	select {
	case w.flow.Passed <- struct{}{}:
	default:
	}
	return true
}
