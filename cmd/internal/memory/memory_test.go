// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

const mib = 1 << 20

func TestShouldRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before uint64
		usage  usage
		want   bool
	}{
		"garbage in an idle process": {100 * mib, usage{allocated: 101 * mib, live: 50 * mib, held: 90 * mib}, true},
		"a busy process":             {100 * mib, usage{allocated: 117 * mib, live: 50 * mib, held: 90 * mib}, false},
		"little garbage":             {1000 * mib, usage{allocated: 1001 * mib, live: 500 * mib, held: 590 * mib}, false},
		"a small process":            {100 * mib, usage{allocated: 101 * mib, live: 20 * mib, held: 30 * mib}, false},
		"the first interval":         {0, usage{allocated: 101 * mib, live: 50 * mib, held: 90 * mib}, false},
	} {
		m := monitor{tc.before}
		if got := m.shouldRelease(tc.usage); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if m.allocated != tc.usage.allocated {
			t.Errorf("%s: the usage is not remembered", name)
		}
	}
}

var kept [][]byte

// TestRead checks that what was read leads to a release, and that nothing is left to
// release after it.
func TestRead(t *testing.T) {
	for range 200 {
		kept = append(kept, make([]byte, mib))
	}
	kept = nil
	runtime.GC() // Go does so at least every two minutes
	var m monitor
	m.shouldRelease(read())
	if !m.shouldRelease(read()) {
		t.Fatalf("200 MiB of garbage: %+v", read())
	}
	before := released()
	debug.FreeOSMemory()
	if after := released(); after < before+100*mib {
		t.Errorf("%d bytes were released, and %d before", after, before)
	}
	if m.shouldRelease(read()) {
		t.Errorf("after a release: %+v", read())
	}
}

func released() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}
