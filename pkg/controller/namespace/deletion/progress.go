// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// While a status goes on changing, it is written ever more rarely: the least
// time between two writes starts at minWriteInterval, grows by
// writeIntervalFactor and ends at maxWriteInterval. That is four writes in the
// first half minute of a termination and twelve an hour later on. After
// quietTime without a write it starts anew.
const (
	minWriteInterval    = time.Second
	maxWriteInterval    = 5 * time.Minute
	writeIntervalFactor = 4
	quietTime           = 2 * maxWriteInterval
)

// Progress is what a Deleter remembers of one Namespace from pass to pass: how
// the termination has moved, which its status tells, and when the status was
// written. The zero value is for a Namespace that it has not seen, or not since
// the process started; the status of the Namespace then stands in for the rest.
type Progress struct {
	moved      time.Time // when something last moved; zero before the first pass
	tallies    map[schema.GroupVersionResource]tally
	finalizers []string // of the Namespace, others' only

	written  time.Time // when the status was last written
	interval time.Duration

	seen atomic.Pointer[time.Time]
}

// tally is what tells that content of a kind has moved.
type tally struct{ objects, unasked, finalizers int }

// Moved tells that an object or a finalizer was seen to go, at a time that is
// more precise than that of the next pass. It may be called at any time.
func (p *Progress) Moved(at time.Time) { p.seen.Store(&at) }

// observe compares what a pass found with what is remembered.
func (p *Progress) observe(ns *v1.Namespace, found *findings, now time.Time) {
	stored := ns.Status.Termination
	first := p.moved.IsZero()
	if first {
		p.tallies = map[schema.GroupVersionResource]tally{}
	}
	finalizers := othersFinalizers(ns)
	moved := first && (stored == nil || !sameRemaining(stored, found.termination())) ||
		!first && !slices.Equal(finalizers, p.finalizers)
	p.finalizers = finalizers
	for _, k := range found.kinds {
		if !k.read {
			continue // what it was last time still counts
		}
		t := tally{objects: len(k.items), unasked: k.unasked}
		for _, it := range k.items {
			t.finalizers += len(it.finalizers)
		}
		if before, known := p.tallies[k.GroupVersionResource]; known && before != t {
			moved = true
		}
		p.tallies[k.GroupVersionResource] = t
	}
	switch seen := p.seen.Load(); {
	case moved && seen != nil && seen.After(p.moved):
		p.moved = *seen
	case moved:
		p.moved = now
	case first:
		p.moved = stored.LastProgressTime.Time
	}
}

// othersFinalizers returns the finalizers of a Namespace save the controller's
// own.
func othersFinalizers(ns *v1.Namespace) []string {
	var finalizers []string
	for _, f := range ns.Spec.Finalizers {
		if f != v1.FinalizerKubernetes {
			finalizers = append(finalizers, string(f))
		}
	}
	return append(finalizers, ns.Finalizers...)
}

// sameRemaining tells whether all content that two terminations know of is the
// same.
func sameRemaining(a, b *v1.NamespaceTermination) bool {
	for _, r := range a.Remaining {
		other := resourceIn(b, r.Group, r.Resource)
		if other == nil {
			if b.OmittedResources == 0 && r.Count != nil && *r.Count > 0 {
				return false // it is gone
			}
			continue
		}
		if r.Count != nil && other.Count != nil &&
			(*r.Count != *other.Count || !equality.Semantic.DeepEqual(r.Objects, other.Objects)) {
			return false
		}
	}
	return true
}

// due tells whether a change of the status should be written now.
func (p *Progress) due(now time.Time) bool {
	return p.written.IsZero() || now.Sub(p.written) >= p.interval
}

// wrote notes a write of the status.
func (p *Progress) wrote(now time.Time) {
	if p.written.IsZero() || now.Sub(p.written) >= quietTime {
		p.interval = minWriteInterval
	} else {
		p.interval = min(p.interval*writeIntervalFactor, maxWriteInterval)
	}
	p.written = now
}
