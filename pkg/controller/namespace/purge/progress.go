// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// A status that keeps changing is written less and less often: the minimum time
// between two writes starts at minWriteInterval, grows by writeIntervalFactor and
// ends at maxWriteInterval. That is four writes in the first half minute of a
// termination, and twelve per hour later on. It starts again after quietTime
// without a write.
const (
	minWriteInterval    = time.Second
	maxWriteInterval    = 5 * time.Minute
	writeIntervalFactor = 4
	quietTime           = 2 * maxWriteInterval
)

// Progress is what a Deleter remembers of one Namespace between passes: when the
// termination last made progress, which its status reports, and when the status
// was written. The zero value is for a Namespace that this process has not seen;
// the status of the Namespace then replaces what is not remembered.
type Progress struct {
	moved      time.Time // the last progress; zero before the first pass
	tallies    map[schema.GroupVersionResource]tally
	finalizers []string // of the Namespace, without the controller's own

	written  time.Time // when the status was last written
	interval time.Duration

	seen atomic.Pointer[time.Time]
}

// tally counts the content of a resource. A tally that differs from the last one
// is progress.
type tally struct{ objects, notDeleting, finalizers int }

// Moved records that an object or a finalizer was removed, at a time that is more
// precise than that of the next pass. It is safe for concurrent use.
func (p *Progress) Moved(at time.Time) { p.seen.Store(&at) }

// observe compares what a pass found with the last one.
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
	for _, r := range found.resources {
		if !r.read {
			continue // the last tally remains valid
		}
		t := tally{objects: len(r.items), notDeleting: r.notDeleting}
		for _, it := range r.items {
			t.finalizers += len(it.finalizers)
		}
		if before, known := p.tallies[r.GroupVersionResource]; known && before != t {
			moved = true
		}
		p.tallies[r.GroupVersionResource] = t
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

// othersFinalizers returns the finalizers of a Namespace without the
// controller's own.
func othersFinalizers(ns *v1.Namespace) []string {
	var finalizers []string
	for _, f := range ns.Spec.Finalizers {
		if f != v1.FinalizerKubernetes {
			finalizers = append(finalizers, string(f))
		}
	}
	return append(finalizers, ns.Finalizers...)
}

// sameRemaining reports whether two terminations agree on all content that both
// report.
func sameRemaining(a, b *v1.NamespaceTermination) bool {
	for _, r := range a.Remaining {
		other := resourceIn(b, r.Group, r.Resource)
		if other == nil {
			if b.OmittedResources == 0 && r.Count != nil && *r.Count > 0 {
				return false // removed
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

// due reports whether a change of the status should be written now.
func (p *Progress) due(now time.Time) bool {
	return p.written.IsZero() || now.Sub(p.written) >= p.interval
}

// wrote records a write of the status.
func (p *Progress) wrote(now time.Time) {
	if p.written.IsZero() || now.Sub(p.written) >= quietTime {
		p.interval = minWriteInterval
	} else {
		p.interval = min(p.interval*writeIntervalFactor, maxWriteInterval)
	}
	p.written = now
}
