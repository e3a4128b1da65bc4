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
	h := &Headroom{bytes: 500 * mib, set: func(percent int) { set = append(set, percent) }}
	h.Started()
	for _, live := range []uint64{0, 10 * mib, 100 * mib, 104 * mib, 125 * mib, 500 * mib, 5000 * mib, 100 * mib} {
		h.adjust(usage{live: live})
	}
	// With 104 MiB, 480 % are close to 500 %. A large heap grows by what is live.
	if want := []int{50_000, 5000, 500, 400, 100, 500}; !slices.Equal(set, want) {
		t.Errorf("set %v, want %v", set, want)
	}
}

// TestAdjustBeforeStarted checks that the heap grows little during a small start.
func TestAdjustBeforeStarted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		headroom, live uint64
		started        bool
		want           int
	}{
		{500 * mib, 0, false, 1600},
		{500 * mib, 8 * mib, false, 200},
		{500 * mib, 20 * mib, false, 100},
		{500 * mib, 40 * mib, false, 1250},
		{500 * mib, 20 * mib, true, 2500},
		{8 * mib, 4 * mib, false, 200},
	} {
		got := 0
		h := &Headroom{bytes: test.headroom, set: func(percent int) { got = percent }}
		if test.started {
			h.Started()
		}
		h.adjust(usage{live: test.live})
		if got != test.want {
			t.Errorf("%+v: the heap grows by %d %%", test, got)
		}
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
	KeepHeadroom(ctx, 200*mib).Started()
	for _, size := range []int{10, 80, 400, 20} {
		kept = [][]byte{make([]byte, size*mib)}
		want := uint64(max(200, size)) * mib
		err := poll.Until(t.Context(), time.Minute, func(context.Context) error {
			runtime.GC() // what runs after a collection can run during the next one
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
