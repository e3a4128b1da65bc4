// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/borough-io/borough/test/poll"
)

func TestAdjust(t *testing.T) {
	t.Parallel()
	var set []int
	k := &keeper{headroom: 500 * mib, set: func(percent int) { set = append(set, percent) }}
	for _, live := range []uint64{0, 10 * mib, 100 * mib, 104 * mib, 125 * mib, 500 * mib, 5000 * mib, 100 * mib} {
		k.adjust(live)
	}
	// With 104 MiB, 480 % are close to 500 %. A large heap grows by what is live.
	if want := []int{50_000, 5000, 500, 400, 100, 500}; !slices.Equal(set, want) {
		t.Errorf("set %v, want %v", set, want)
	}
}

// TestKeepHeadroom checks by how much the heap is to grow after each collection.
func TestKeepHeadroom(t *testing.T) {
	before := debug.SetGCPercent(100)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		kept = nil
		debug.SetGCPercent(before)
	})
	KeepHeadroom(ctx, 200*mib)
	for _, size := range []int{10, 80, 400, 20} {
		kept = [][]byte{make([]byte, size*mib)}
		runtime.GC()
		want := uint64(max(200, size)) * mib
		err := poll.Until(t.Context(), time.Minute, func(context.Context) error {
			samples := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
			metrics.Read(samples)
			if growth := samples[0].Value.Uint64() - samples[1].Value.Uint64(); growth < want*9/10 || growth > want*12/10 {
				return fmt.Errorf("the heap may grow by %d MiB, want %d", growth/mib, want/mib)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d MiB are live: %v", size, err)
		}
	}
}
