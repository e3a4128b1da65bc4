// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import "testing"

func TestOrder(t *testing.T) {
	o := &order{}
	want := func(what string, revisions, positions map[int64]int64) {
		t.Helper()
		for position, revision := range revisions {
			if got := o.revision(position); got != revision {
				t.Errorf("%s: the revision at %d is %d, want %d", what, position, got, revision)
			}
		}
		for revision, position := range positions {
			if got := o.position(revision); got != position {
				t.Errorf("%s: the position of %d is %d, want %d", what, revision, got, position)
			}
		}
	}
	o.reset(10)
	want("reset", map[int64]int64{1: 10}, map[int64]int64{9: -1, 10: 1, 11: 1})
	o.add(0, true)
	o.add(12, true)
	o.add(0, false) // no position of its own
	o.add(0, true)
	o.advance(20)
	want("changes", map[int64]int64{1: 10, 2: 10, 3: 12, 4: 12, 5: 20}, map[int64]int64{10: 1, 11: 1, 12: 3, 19: 3, 25: 3})
	o.trim(3)
	want("trimmed before a Namespace", map[int64]int64{3: 12, 5: 20}, map[int64]int64{11: -1, 12: 3, 20: 3})
	o.trim(5)
	want("trimmed after it", map[int64]int64{5: 20}, map[int64]int64{12: -1, 20: -1})
	o.add(30, true)
	want("a Namespace", map[int64]int64{5: 20, 6: 30}, map[int64]int64{20: -1, 29: -1, 30: 6})
	o.reset(40)
	want("reset again", map[int64]int64{7: 40}, map[int64]int64{30: -1, 40: 7})
}
