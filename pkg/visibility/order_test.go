// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import "testing"

func TestOrder(t *testing.T) {
	o := &order{}
	type positions struct{ first, last int64 }
	want := func(what string, revisions map[int64]int64, of map[int64]positions) {
		t.Helper()
		for position, revision := range revisions {
			if got := o.revision(position); got != revision {
				t.Errorf("%s: the revision at %d is %d, want %d", what, position, got, revision)
			}
		}
		for revision, want := range of {
			if first, last := o.positions(revision); first != want.first || last != want.last {
				t.Errorf("%s: the positions of %d are %d and %d, want %d", what, revision, first, last, want)
			}
		}
	}
	o.reset(10)
	want("reset", map[int64]int64{1: 10}, map[int64]positions{9: {-1, -1}, 10: {1, 1}, 11: {1, 1}})
	o.add(0, true)
	o.add(12, true)
	o.add(0, false) // no position of its own
	o.add(0, true)
	o.advance(20)
	want("changes", map[int64]int64{1: 10, 2: 10, 3: 12, 4: 12, 5: 20}, map[int64]positions{10: {1, 2}, 11: {1, 2}, 12: {4, 5}, 19: {4, 5}, 25: {4, 5}})
	o.trim(3)
	want("trimmed before a Namespace", map[int64]int64{3: 12, 5: 20}, map[int64]positions{11: {-1, -1}, 12: {4, 5}, 20: {4, 5}})
	o.trim(5)
	want("trimmed after it", map[int64]int64{5: 20}, map[int64]positions{12: {-1, 5}, 13: {5, 5}, 20: {5, 5}})
	o.add(30, true)
	want("a Namespace", map[int64]int64{5: 20, 6: 30}, map[int64]positions{11: {-1, -1}, 12: {-1, 5}, 20: {5, 5}, 29: {5, 5}, 30: {6, 6}})
	o.reset(40)
	want("reset again", map[int64]int64{7: 40}, map[int64]positions{30: {-1, -1}, 40: {7, 7}})
}
