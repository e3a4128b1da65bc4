// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"testing"

	"github.com/borough-io/borough/pkg/history"
)

type version struct{ history.Lifetime }

func newVersion(from, to int64) *version { return &version{history.Lifetime{From: from, To: to}} }

// TestPast checks which version is in force at each position of the history, wherever it
// begins.
func TestPast(t *testing.T) {
	const key, end = "a", 9
	first, second, third, deleted, initial := newVersion(1, 3), newVersion(3, 4), newVersion(6, 0), newVersion(6, 8), newVersion(0, 0)
	for name, tc := range map[string]struct {
		versions []*version
		want     [end + 1]*version // by position
	}{
		"none":       {},
		"one":        {[]*version{third}, [end + 1]*version{6: third, third, third, third}},
		"unchanged":  {[]*version{initial}, [end + 1]*version{initial, initial, initial, initial, initial, initial, initial, initial, initial, initial}},
		"several":    {[]*version{first, second, third}, [end + 1]*version{1: first, first, second, 6: third, third, third, third}},
		"deleted":    {[]*version{first, second, deleted}, [end + 1]*version{1: first, first, second, 6: deleted, deleted}},
		"never long": {[]*version{newVersion(2, 2)}, [end + 1]*version{}},
	} {
		t.Run(name, func(t *testing.T) {
			past := history.Past[string, *version]{}
			var last *version
			for _, v := range tc.versions {
				if last != nil {
					past.Add(key, last)
				}
				last = v
			}
			for floor := range int64(end + 1) {
				if past.Trim(key, last, floor) {
					last = nil
				}
				for position := floor; position <= end; position++ {
					if got := past.At(key, last, position); got != tc.want[position] {
						t.Errorf("at %d of the history from %d: got %v, want %v", position, floor, got, tc.want[position])
					}
				}
			}
			if len(past) > 0 || last != tc.want[end] {
				t.Errorf("at the end, %v and %v are left", past, last)
			}
		})
	}
}
