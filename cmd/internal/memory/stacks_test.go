// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/borough-io/borough/test/poll"
)

// TestLargeStacks checks with how much stack a goroutine starts, while others come and go,
// and what the large stacks cost.
func TestLargeStacks(t *testing.T) {
	if start := awaitStackSize(t, 0); start > 8<<10 {
		t.Fatalf("goroutines start with %d bytes", start)
	}
	ctx, stop := context.WithCancel(t.Context())
	before := runtime.NumGoroutine()
	StartLargeStacks(ctx)
	for _, others := range []int{600, 2400, 500, 1200} {
		end := make(chan struct{})
		for range others {
			go func() { <-end }()
		}
		awaitStackSize(t, 32<<10)
		poll.Eventually(t, func() string {
			if parked, want := runtime.NumGoroutine()-before-others, (before+others)/othersPerParked; parked < want-2 || parked > want+2 {
				return fmt.Sprintf("%d goroutines are parked for %d others", parked, others)
			}
			return ""
		})
		close(end)
		awaitGoroutines(t, before+others/othersPerParked+8)
	}
	stop()
	awaitGoroutines(t, before)
}

// TestLargeStacksOfMany checks that the number of parked goroutines is bounded.
func TestLargeStacksOfMany(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	before := runtime.NumGoroutine()
	const others = 10_000
	for range others {
		go func() { <-ctx.Done() }()
	}
	StartLargeStacks(ctx)
	if parked := runtime.NumGoroutine() - before - others; parked > maxParked || parked < maxParked-20 {
		t.Errorf("%d goroutines are parked", parked)
	}
	stop()
	awaitGoroutines(t, before)
}

// awaitStackSize waits until goroutines start with a stack of so many bytes, or any with 0,
// and returns the size.
func awaitStackSize(t *testing.T, want uint64) uint64 {
	t.Helper()
	sample := []metrics.Sample{{Name: "/gc/stack/starting-size:bytes"}}
	poll.Eventually(t, func() string {
		runtime.GC()
		metrics.Read(sample)
		if got := sample[0].Value.Uint64(); want != 0 && got != want {
			return fmt.Sprintf("goroutines start with %d bytes, want %d", got, want)
		}
		return ""
	})
	return sample[0].Value.Uint64()
}

func awaitGoroutines(t *testing.T, most int) {
	t.Helper()
	poll.Eventually(t, func() string {
		if n := runtime.NumGoroutine(); n > most {
			return fmt.Sprintf("there are %d goroutines, want %d", n, most)
		}
		return ""
	})
}
