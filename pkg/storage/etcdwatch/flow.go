// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"math"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Flow belongs to a watch that is not that of a watch cache. It connects what reads from
// etcd with what the client reads. Between them is the library, which buffers some hundred
// events, however large they are.
type Flow struct {
	// passed receives a value when all that was sent to the library before a mark has left it.
	// Its capacity is 1, for one mark at a time.
	passed chan struct{}
	// End ends the watch with the error 410, and drops what was not read yet.
	End func(reason string)
	// page is how many objects to read next, while the library reads those that the watch begins
	// with.
	page int64
}

// NewFlow returns the flow of a watch that end ends.
func NewFlow(end func(reason string)) *Flow {
	return &Flow{passed: make(chan struct{}, 1), End: end, page: firstPage}
}

// Pass takes the revision of each bookmark that leaves the library, and reports whether the
// bookmark is a mark, which the client must not get.
func (f *Flow) Pass(revision uint64) (isMark bool) {
	if revision != markRevision {
		return false
	}
	select {
	case f.passed <- struct{}{}:
	default:
	}
	return true
}

type flowKey struct{}

// WithFlow returns a context for the library's part of a watch.
func WithFlow(ctx context.Context, flow *Flow) context.Context {
	return context.WithValue(ctx, flowKey{}, flow)
}

// flowOf returns the Flow of a context, or nil if the watch is that of a watch cache.
func flowOf(ctx context.Context) *Flow {
	flow, _ := ctx.Value(flowKey{}).(*Flow)
	return flow
}

// markRevision is a revision that etcd does not reach.
const markRevision = math.MaxInt64

// mark returns a progress notification, which no client gets. The library keeps it in the
// order of the events, and unlike those, no selector leaves it out.
func mark() clientv3.WatchResponse {
	return clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: markRevision}}
}
