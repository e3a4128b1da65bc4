// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

func TestWant(t *testing.T) {
	p := policy{hosts: hosts, lifetime: 100 * time.Hour}
	var all []*x509.Certificate
	for range 5 {
		created, err := p.create(start)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, created.ca)
	}
	pick := func(indices ...int) (cas []*x509.Certificate) {
		for _, i := range indices {
			cas = append(cas, all[i])
		}
		return cas
	}
	var trusts trust
	const grace = time.Hour
	for _, step := range []struct {
		what                string
		after               time.Duration
		trusted, used, want []int
		change              time.Duration // since the start, 0 for none
	}{
		{"first", 0, nil, []int{0}, []int{0}, 0},
		{"next", 60 * time.Hour, []int{0}, []int{0, 1}, []int{0, 1}, 0},
		{"promoted", 80 * time.Hour, []int{0, 1}, []int{1}, []int{0, 1}, 81 * time.Hour},
		{"in the grace period", 80*time.Hour + 59*time.Minute, []int{0, 1}, []int{1}, []int{0, 1}, 81 * time.Hour},
		{"after it", 81 * time.Hour, []int{0, 1}, []int{1}, []int{1}, 0},
		{"not written", 82 * time.Hour, []int{0, 1}, []int{1}, []int{1}, 0},
		{"used again", 83 * time.Hour, []int{0, 1}, []int{0, 1}, []int{0, 1}, 0},
		{"another grace period", 84 * time.Hour, []int{0, 1}, []int{1}, []int{0, 1}, 85 * time.Hour},
		{"the latest ones stay", 84 * time.Hour, []int{0, 2, 1, 3, 4}, []int{1}, []int{1, 3, 4}, 85 * time.Hour},
		{"the latest one stays", 84 * time.Hour, []int{0, 1, 3, 4}, []int{1, 2}, []int{1, 4, 2}, 85 * time.Hour},
		{"twice", 84 * time.Hour, []int{1, 1}, []int{1}, []int{1}, 0},
		{"expires in the grace period", 99*time.Hour + 30*time.Minute, []int{0, 1}, []int{1}, []int{0, 1}, 100 * time.Hour},
		{"expired", 100 * time.Hour, []int{0, 1}, []int{1}, []int{1}, 0},
	} {
		now := start.Add(step.after)
		trusts.observe(pick(step.trusted...), now)
		got, change := trusts.want(pick(step.used...), grace, now)
		if !slices.EqualFunc(got, pick(step.want...), (*x509.Certificate).Equal) {
			t.Errorf("%s: %d CAs, want %v", step.what, len(got), step.want)
		}
		var want time.Time
		if step.change != 0 {
			want = start.Add(step.change)
		}
		if !change.Equal(want) {
			t.Errorf("%s: changes at %s, want %s", step.what, change, want)
		}
	}
}
