// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Finding is a request that the server did not withstand.
type Finding struct {
	Role    string
	Request Request
	Fault   string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s, as %s: %s", f.Request, f.Role, f.Fault)
}

// Report is what came of an attack.
type Report struct {
	Seed     uint64
	Bounds   string // what a request may cost
	Health   string // of the server before and after
	Findings []Finding
	classes  map[string]*tally
}

// tally counts the requests of one class.
type tally struct {
	requests int
	roles    map[string]int
	codes    map[int]int
	bytes    int     // that were sent
	highest  float64 // share of its bound that a request cost
	which    string
}

func newReport(seed uint64) *Report { return &Report{Seed: seed, classes: map[string]*tally{}} }

func (r *Report) add(role Role, request Request, a answer, share float64) {
	t := r.classes[request.Class]
	if t == nil {
		t = &tally{roles: map[string]int{}, codes: map[int]int{}}
		r.classes[request.Class] = t
	}
	t.requests++
	t.bytes += request.size()
	t.roles[role.Name]++
	t.codes[a.code]++
	if share > t.highest {
		t.highest, t.which = share, request.Name+" as "+role.Name
	}
}

// Requests is how many requests were sent and judged.
func (r *Report) Requests() (n int) {
	for _, t := range r.classes {
		n += t.requests
	}
	return n
}

// String has a line for each class, and one for each finding.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d; %s\n%s\n", r.Seed, r.Bounds, r.Health)
	for _, class := range slices.Sorted(maps.Keys(r.classes)) {
		t := r.classes[class]
		fmt.Fprintf(&b, "%-12s %6d requests %9d bytes; codes %s; highest at %.0f%% of its bound: %s\n",
			class, t.requests, t.bytes, counts(t.codes), 100*t.highest, t.which)
	}
	fmt.Fprintf(&b, "%d requests, %d findings\n", r.Requests(), len(r.Findings))
	for _, finding := range r.Findings {
		fmt.Fprintln(&b, finding)
	}
	return b.String()
}

// counts writes "200: 3, 400: 7". A request that its client left has no code.
func counts[K cmp.Ordered](of map[K]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%v: %d", key, of[key]))
	}
	return strings.Join(parts, ", ")
}
