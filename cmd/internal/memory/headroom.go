// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"runtime"
	"runtime/debug"
)

// minGrowth is the growth of a large heap between two garbage collections, in percent of
// what is live: Go's default.
const minGrowth = 100

// KeepHeadroom lets the heap grow between two garbage collections by at least headroom
// bytes, or by as much as is live if that is more. Go starts a collection when the heap has
// grown by a percentage of what is live, so with a small live heap a server under load
// marks it many times a second. GOMEMLIMIT remains in force. When ctx ends, the percentage
// remains as it is.
func KeepHeadroom(ctx context.Context, headroom uint64) {
	k := &keeper{headroom: headroom, set: func(percent int) { debug.SetGCPercent(percent) }}
	k.adjust(read().live)
	k.awaitCollection(ctx)
}

// keeper sets the percentage after each collection.
type keeper struct {
	headroom uint64
	percent  int // that was set last
	set      func(percent int)
}

func (k *keeper) adjust(live uint64) {
	percent := max(minGrowth, int(k.headroom*100/max(live, 1<<20)))
	// Setting it stops all goroutines for a moment, so small changes are not worth it.
	if change := percent - k.percent; change > k.percent/10 || -change > k.percent/10 {
		k.percent = percent
		k.set(percent)
	}
}

// awaitCollection adjusts the percentage when the next collection is over.
func (k *keeper) awaitCollection(ctx context.Context) {
	type garbage struct{ _ *garbage } // objects without a pointer may share their memory
	runtime.AddCleanup(new(garbage), func(k *keeper) {
		if ctx.Err() == nil {
			k.adjust(read().live)
			k.awaitCollection(ctx)
		}
	}, k)
}
