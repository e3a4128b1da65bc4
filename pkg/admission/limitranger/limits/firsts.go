// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "slices"

// firsts keeps the first max of the added elements, in the order of compare, so that
// the size of a report is bounded.
type firsts[T any] struct {
	max     int
	compare func(a, b T) int

	kept  []T // sorted
	count int // of all added elements
}

// keeps reports whether add would keep x.
func (f *firsts[T]) keeps(x T) bool {
	return len(f.kept) < f.max || f.compare(x, f.kept[f.max-1]) < 0
}

func (f *firsts[T]) add(x T) {
	f.count++
	if !f.keeps(x) {
		return
	}
	if len(f.kept) == f.max {
		f.kept = f.kept[:f.max-1]
	}
	at, _ := slices.BinarySearchFunc(f.kept, x, f.compare)
	f.kept = slices.Insert(f.kept, at, x)
}
