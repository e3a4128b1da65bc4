// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory sets how far the heap of a process grows between two garbage
// collections, and how large the stacks of goroutines are when they start, and returns
// memory that an idle process does not need.
package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// interval is how long a process has to be idle. Go collects garbage every two minutes, and
// when the heap has grown to several times what is in use, and keeps the memory for the
// next time.
const interval = 30 * time.Second

// worthwhile is how many bytes there have to be to release.
const worthwhile = 16 << 20

// ReleaseWhenIdle returns unused memory to the operating system: at once, what the start of
// the process has left, and whenever it has allocated little for 30 seconds, until ctx ends.
func ReleaseWhenIdle(ctx context.Context) {
	debug.FreeOSMemory()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var m monitor
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if m.shouldRelease(read()) {
				debug.FreeOSMemory()
			}
		}
	}
}

// usage is the memory of the heap, in bytes.
type usage struct {
	allocated uint64 // since the start
	live      uint64 // after the last garbage collection
	roots     uint64 // that a garbage collection scans in addition: stacks and global variables
	held      uint64 // in objects, also those that are garbage, and free
}

func read() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return usage{allocated: value(0), live: value(1), roots: value(2) + value(3), held: value(4) + value(5)}
}

// afterCollections calls do after each garbage collection, until ctx ends. Calls do not
// overlap.
func afterCollections(ctx context.Context, do func()) {
	var mu sync.Mutex
	var await func()
	await = func() {
		type garbage struct{ _ *garbage } // objects without a pointer may share their memory
		runtime.AddCleanup(new(garbage), func(struct{}) {
			if ctx.Err() != nil {
				return
			}
			await() // first, so that a collection during the call is not missed
			mu.Lock()
			defer mu.Unlock()
			do()
		}, struct{}{})
	}
	await()
}

// monitor compares the usage with that one interval before.
type monitor struct{ allocated uint64 }

// shouldRelease reports whether a garbage collection is worth its cost: it marks all that
// is live.
func (m *monitor) shouldRelease(u usage) bool {
	since := u.allocated - m.allocated
	m.allocated = u.allocated
	return since < max(u.live/10, worthwhile) && u.held > u.live+max(u.live/5, worthwhile)
}
