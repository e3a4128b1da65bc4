// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestTruth lets anything fail and checks each status that is written against
// what is stored at that moment: no condition and no termination claims that
// content is gone while an object is left, neither then nor later on, and the
// Namespace does not go before its content.
func TestTruth(t *testing.T) {
	var finished, statuses int
	for seed := range uint64(1000) {
		done, written := testTruth(t, rand.New(rand.NewPCG(seed, 0)))
		if done {
			finished++
		}
		statuses += written
	}
	if finished < 900 || statuses < 1000 {
		t.Errorf("only %d purges came to their end and %d statuses were written: the test shows little", finished, statuses)
	}
}

func FuzzTruth(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b uint64) { testTruth(t, rand.New(rand.NewPCG(a, b))) })
}

func testTruth(t *testing.T, rng *rand.Rand) (finished bool, statuses int) {
	s := newServer(t)
	s.discovered.Resources = append(s.discovered.Resources,
		Resource{GroupVersionResource: things, Delete: true, DeleteCollection: rng.IntN(2) == 0})
	ns := s.terminating(func(ns *v1.Namespace) {
		if rng.IntN(3) == 0 {
			ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other")
		}
	})
	for _, gvr := range []schema.GroupVersionResource{pods, limitRanges, things} {
		for i := range rng.IntN(4) {
			o := object(fmt.Sprint(i))
			if rng.IntN(3) == 0 {
				o.Finalizers = []string{"example.com/f"}
			}
			if rng.IntN(3) == 0 {
				waits(o)
			}
			s.add(gvr, o)
		}
	}
	count := func() (objects, held, notDeleting int) {
		for _, of := range s.content {
			for _, o := range of {
				objects++
				if len(o.Finalizers) > 0 {
					held++
				}
				if o.DeletionTimestamp == nil {
					notDeleting++
				}
			}
		}
		return objects, held, notDeleting
	}
	s.wrote = func(ns *v1.Namespace) {
		statuses++
		objects, held, notDeleting := count()
		for _, c := range ns.Status.Conditions {
			if c.Status != corev1.ConditionFalse {
				continue
			}
			if c.Type == v1.NamespaceContentRemaining && objects > 0 ||
				c.Type == v1.NamespaceFinalizersRemaining && held > 0 ||
				c.Type == v1.NamespaceDeletionContentFailure && notDeleting > 0 && c.Message == "All content successfully deleted, may be waiting on finalization" {
				t.Errorf("%s: %s, with %d objects left, %d held, %d not marked", c.Reason, c.Message, objects, held, notDeleting)
			}
		}
		if len(ns.Status.Conditions) != 5 {
			t.Errorf("%d conditions", len(ns.Status.Conditions))
		}
		for gvr, of := range s.content {
			r := resourceIn(ns.Status.Termination, gvr.Group, gvr.Resource)
			switch {
			case r == nil:
				if len(of) > 0 {
					t.Errorf("%d %s are left, of which the termination says nothing", len(of), gvr.Resource)
				}
			case r.Count != nil && *r.Count != int64(len(of)):
				t.Errorf("%d %s are left, %d in the termination", len(of), gvr.Resource, *r.Count)
			}
		}
	}
	// truthful checks what is stored, whenever it was written.
	truthful := func(ns *v1.Namespace) {
		objects, _, _ := count()
		if ns == nil || ns.Status.Termination == nil || objects == 0 {
			return
		}
		for _, c := range ns.Status.Conditions {
			if c.Type == v1.NamespaceContentRemaining && c.Status == corev1.ConditionFalse {
				t.Errorf("%s with %d objects left", c.Message, objects)
			}
		}
		for gvr, of := range s.content {
			r := resourceIn(ns.Status.Termination, gvr.Group, gvr.Resource)
			if len(of) > 0 && (r == nil || r.Count != nil && *r.Count < int64(len(of))) {
				t.Errorf("%d %s are left, the termination says %+v", len(of), gvr.Resource, r)
			}
		}
	}
	var mu sync.Mutex // for rng
	failing := true
	s.before = func(verb, resource, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if resource == "namespaces/finalize" {
			s.mu.Lock()
			defer s.mu.Unlock()
			if objects, _, _ := count(); objects > 0 {
				t.Errorf("finalized with %d objects left", objects)
			}
		}
		if !failing || rng.IntN(6) > 0 {
			return nil
		}
		return []error{
			unavailable(), forbidden(pods), errors.New("connection refused"),
			apierrors.NewMethodNotSupported(pods.GroupResource(), verb), apierrors.NewInternalError(errors.New("oops")),
		}[rng.IntN(5)]
	}

	d, progress := s.deleter(), &Progress{}
	for pass := range 30 {
		if rng.IntN(5) == 0 {
			progress = &Progress{} // the controller was restarted
		}
		s.clock.SetTime(s.clock.Now().Add(time.Duration(rng.IntN(40)) * time.Second))
		failing = pass < 20
		s.discovered.Failure = nil
		if failing && rng.IntN(4) == 0 {
			s.discovered.Failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "g", Version: "v"}: errors.New("no")}}
		}
		err := d.Delete(t.Context(), ns, time.Time{}, progress)
		s.mu.Lock()
		objects, _, _ := count()
		stored := s.namespaces["ns"]
		truthful(stored)
		s.mu.Unlock()
		if err == nil {
			held := stored != nil && !slices.Contains(stored.Spec.Finalizers, v1.FinalizerKubernetes)
			if objects > 0 || stored != nil && !held {
				t.Errorf("success with %d objects left, the namespace %v", objects, stored)
			}
			return true, statuses
		}
		// Others do their part, sometimes.
		s.mu.Lock()
		for gvr, of := range s.content {
			s.content[gvr] = slices.DeleteFunc(of, func(o *partial) bool { return o.DeletionTimestamp != nil && rng.IntN(2) == 0 })
		}
		s.mu.Unlock()
	}
	return false, statuses
}

// TestIncarnation replaces the Namespace, and all that is in it, by another of
// the same name at every step of a purge in turn. The other never loses an
// object, nor its finalizer, not even when it is being deleted itself.
func TestIncarnation(t *testing.T) {
	for _, purge := range []bool{true, false} {
		for _, terminating := range []bool{true, false} {
			t.Run(fmt.Sprintf("purge=%v,terminating=%v", purge, terminating), func(t *testing.T) {
				step := 0
				for testIncarnation(t, purge, terminating, step) {
					step++
				}
				if step < 3 {
					t.Errorf("a purge has only %d steps", step)
				}
			})
		}
	}
}

// testIncarnation returns false when a purge has no such step.
func testIncarnation(t *testing.T, purge, terminating bool, step int) bool {
	s := newServer(t)
	ns := s.terminating(func(ns *v1.Namespace) {
		// With a status to write on the way.
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other")
	})
	fill := func() {
		s.add(pods, object("a"), object("b"))
		s.add(limitRanges, object("l"))
	}
	fill()
	var mu sync.Mutex
	steps, replaced := 0, false
	s.before = func(verb, _, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		var refused error
		if verb == "create" && !purge { // then objects are deleted one by one
			refused = forbidden(v1.SchemeGroupVersion.WithResource("namespacepurges"))
		}
		if steps++; steps-1 != step {
			return refused
		}
		replaced = true
		s.mu.Lock()
		clear(s.content)
		other := s.namespaces["ns"].DeepCopy()
		other.UID, other.Status = "uid-2", v1.NamespaceStatus{}
		other.Spec.Finalizers = []v1.FinalizerName{v1.FinalizerKubernetes}
		if !terminating {
			other.DeletionTimestamp = nil
		}
		s.store(other)
		s.mu.Unlock()
		fill()
		return refused
	}
	_ = s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{}) // fails or not, as the step has it
	if !replaced {
		return false
	}
	other := s.get("ns")
	if other == nil || len(other.Spec.Finalizers) != 1 || len(other.Status.Conditions) != 0 {
		t.Errorf("step %d: the other namespace became %v", step, other)
	}
	if p, l := s.names(pods), s.names(limitRanges); len(p) != 2 || len(l) != 1 {
		t.Errorf("step %d (%v): %v and %v are left of the other's objects", step, s.requests, p, l)
	}
	return true
}
