// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"runtime"
)

const (
	// frame is how many bytes of its stack of 128 KiB a parked goroutine uses. Only about
	// 11 KiB of them are resident, but all count for GOMEMLIMIT. The compiler puts larger
	// variables on the heap.
	frame = 120 << 10
	// othersPerParked is for how many other goroutines one is parked. If these use up to
	// 14 KiB each, the average is between 16 and 32 KiB.
	othersPerParked = 6
	// maxParked bounds what they cost.
	maxParked = 512
)

// StartLargeStacks lets goroutines start with a stack of 32 KiB, until ctx ends. A request
// runs in three goroutines of the library, which need that much or half of it. If they
// start with 4 KiB, copying their stacks to larger ones takes a tenth of the CPU time of a
// request.
//
// Go starts a goroutine with a stack as large as what goroutines use on average, as of the
// last garbage collection (gcComputeStartingStackSize in runtime/stack.go). Most goroutines
// of a server are idle, and use little. So some are added that use much, and do nothing.
func StartLargeStacks(ctx context.Context) {
	p := &parked{end: make(chan struct{})}
	p.adjust(ctx)
	afterCollections(ctx, func() { p.adjust(ctx) })
}

// parked are goroutines that use much of their stacks.
type parked struct {
	count int
	end   chan struct{} // ends one for each value
}

// adjust starts or ends some of them.
func (p *parked) adjust(ctx context.Context) {
	others := max(0, runtime.NumGoroutine()-p.count)
	want := min(others/othersPerParked, maxParked)
	for ; p.count < want; p.count++ {
		go park(ctx.Done(), p.end)
	}
	for ; p.count > want; p.count-- {
		select {
		case p.end <- struct{}{}:
		case <-ctx.Done():
		}
	}
}

// park uses a frame until it is ended.
//
//go:noinline
func park(done, end <-chan struct{}) {
	if done == nil {
		// Never, because it would fill the frame, which is part of the stack all the same.
		var content [frame]byte
		fill(&content)
	}
	select {
	case <-done:
	case <-end:
	}
}

//go:noinline
func fill(content *[frame]byte) { content[0] = 1 }
