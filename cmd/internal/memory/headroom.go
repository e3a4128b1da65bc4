// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"runtime/debug"
	"sync/atomic"
)

// minGrowth is the growth of a large heap between two garbage collections, in percent of
// what is live: Go's default.
const minGrowth = 100

// What is in use after the start of a process that has little of it would otherwise be spread
// over all the garbage of the start.
const (
	// startHeadroom is the headroom, in bytes, while the process starts.
	startHeadroom = 16 << 20
	// largeStart is how many live bytes end that: collections would take too long.
	largeStart = 32 << 20
)

// Headroom is how far the heap grows at least between two garbage collections.
type Headroom struct {
	bytes   uint64
	percent int // that was set last
	set     func(percent int)
	started atomic.Bool
}

// KeepHeadroom lets the heap grow between two garbage collections by at least this many
// bytes, or by as much as is live if that is more. Before Started, with less than 32 MiB
// live, 16 MiB are enough. Go starts a collection when the heap has grown by a percentage of
// what is live, so with a small live heap a server under load marks it many times a second.
// GOMEMLIMIT remains in force. When ctx ends, the percentage remains as it is.
func KeepHeadroom(ctx context.Context, bytes uint64) *Headroom {
	h := &Headroom{bytes: bytes, set: func(percent int) { debug.SetGCPercent(percent) }}
	h.adjust(read())
	afterCollections(ctx, func() { h.adjust(read()) })
	return h
}

// Started ends the start of the process. The next collection adjusts the percentage.
func (h *Headroom) Started() { h.started.Store(true) }

// adjust sets the percentage after a collection.
func (h *Headroom) adjust(u usage) {
	bytes := h.bytes
	if u.live < largeStart && !h.started.Load() {
		bytes = min(bytes, startHeadroom)
	}
	percent := max(minGrowth, int(bytes*100/max(u.live+u.roots, 1<<20)))
	// Setting it stops all goroutines for a moment, so small changes are not worth it.
	if change := percent - h.percent; change > h.percent/10 || -change > h.percent/10 {
		h.percent = percent
		h.set(percent)
	}
}
