// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestFinalizersLeave follows a purge that waits to its end.
func TestFinalizersLeave(t *testing.T) {
	s := newServer(t)
	ns := s.terminating()
	s.add(pods, object("a", finalizers("example.com/f")))
	s.add(limitRanges, object("l"))
	d := s.deleter()
	var remaining *ContentRemainingError
	if err := d.Delete(t.Context(), ns, time.Time{}, &Progress{}); !errors.As(err, &remaining) || remaining.Failure != nil {
		t.Fatalf("got %v", err)
	}
	pod := s.content[pods][0]
	want := []Remaining{{Resource: s.discovered.Resources[1], ResourceVersion: remaining.Content[0].ResourceVersion,
		Objects: map[types.UID][]string{pod.UID: {"example.com/f"}}}}
	if diff := cmp.Diff(want, remaining.Content); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
	s.content[pods] = nil
	// An older state of the Namespace will do.
	if err := d.Delete(t.Context(), ns, time.Time{}, &Progress{}); err != nil {
		t.Fatal(err)
	}
	if s.get("ns") != nil {
		t.Error("the namespace is still there")
	}
}

// TestUndiscovered makes two passes over a Namespace with an Event, which the server
// purges although discovery does not show it. No request is refused.
func TestUndiscovered(t *testing.T) {
	held := finalizers("example.com/f")
	podsLeave := func(s *server) { s.content[pods] = nil }
	for name, tc := range map[string]struct {
		server   func(*server)
		between  func(*server) // is called between the passes
		requests [][]string    // of each pass, sorted
		// remaining is what the status reports in the end; nil if the Namespace is gone.
		remaining []string
	}{
		"the Pods leave between the passes": {
			server:  func(s *server) { s.add(pods, object("a", held)) },
			between: podsLeave,
			requests: [][]string{
				{"create namespacepurges", "list limitranges", "list pods", "update namespaces/status"},
				{"create namespacepurges", "list limitranges", "list pods"},
			},
		},
		"the Pods leave right after a purge": {
			server: func(s *server) {
				s.add(pods, object("a", held))
				s.before = func(verb, resource, _ string) error {
					if verb == "list" && resource == "pods" {
						s.mu.Lock()
						defer s.mu.Unlock()
						podsLeave(s)
					}
					return nil
				}
			},
			requests: [][]string{{"create namespacepurges", "create namespacepurges", "list limitranges", "list pods"}},
		},
		"the Pods leave before a LimitRange": {
			server: func(s *server) {
				s.add(pods, object("a", held))
				s.add(limitRanges, object("l", held, deleted))
			},
			between: podsLeave,
			requests: [][]string{
				{"create namespacepurges", "list limitranges", "list pods", "update namespaces/status"},
				{"create namespacepurges", "list limitranges", "list limitranges", "list pods", "update namespaces/status"},
			},
			remaining: []string{"limitranges"},
		},
		"the Event stays with a LimitRange": {
			server: func(s *server) {
				s.content[events][0].Finalizers = []string{"example.com/f"}
				s.add(limitRanges, object("l", held))
			},
			requests: [][]string{
				{"create namespacepurges", "list events", "list limitranges", "update namespaces/status"},
				{"create namespacepurges", "list events", "list limitranges", "list limitranges", "list pods"},
			},
			remaining: []string{"limitranges", "events"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.terminating()
			s.add(events, object("e"))
			tc.server(s)
			d, progress := s.deleter(), &Progress{}
			for i, want := range tc.requests {
				if i > 0 && tc.between != nil {
					tc.between(s)
				}
				s.clock.SetTime(testTime.Add(time.Duration(i) * time.Hour)) // a write of the status is due
				s.requests = nil
				_ = d.Delete(t.Context(), s.get("ns"), time.Time{}, progress) // fails while content remains
				slices.Sort(s.requests)
				if diff := cmp.Diff(want, s.requests); diff != "" {
					t.Errorf("requests of pass %d (-want +got):\n%s", i+1, diff)
				}
			}
			var remaining []string
			if ns := s.get("ns"); ns != nil {
				for _, r := range ns.Status.Termination.Remaining {
					remaining = append(remaining, r.Resource)
				}
			}
			if diff := cmp.Diff(tc.remaining, remaining); diff != "" {
				t.Errorf("remaining (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPurgeFails has the purge fail twice while nothing is left of what is discovered. The
// server may have an Event, so the finalizer stays while another agent holds the Namespace.
func TestPurgeFails(t *testing.T) {
	for name, failure := range map[string]error{
		"it fails":                 unavailable(),
		"it is refused":            forbidden(v1.SchemeGroupVersion.WithResource("namespacepurges")),
		"it is of a later release": apierrors.NewBadRequest(`strict decoding error: unknown field "spec.later"`),
	} {
		for _, held := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, held=%t", name, held), func(t *testing.T) {
				s := newServer(t)
				s.terminating(func(ns *v1.Namespace) {
					if held {
						ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other")
					}
				})
				if held {
					s.add(events, object("e"))
				}
				failing := true
				s.before = func(verb, _, _ string) error {
					if verb == "create" && failing {
						return failure
					}
					return nil
				}
				d, progress := s.deleter(), &Progress{}
				for range 2 {
					err := d.Delete(t.Context(), s.get("ns"), time.Time{}, progress)
					ns := s.get("ns")
					if !held {
						if err != nil || ns != nil {
							t.Errorf("an empty Namespace: got error %v and %v", err, ns)
						}
						return
					}
					if err == nil || !strings.Contains(err.Error(), "purge the namespace: ") {
						t.Errorf("got error %v", err)
					}
					if !slices.Contains(ns.Spec.Finalizers, v1.FinalizerKubernetes) {
						t.Error("the finalizer was removed")
					}
					const unknown = "Not all content could be read: resources that only the server sees"
					want := []string{
						discoveryFine, parsingFine,
						"NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: purge the namespace: " + failure.Error(),
						"NamespaceContentRemaining=Unknown ContentUnknown: " + unknown,
						"NamespaceFinalizersRemaining=Unknown ContentUnknown: " + unknown,
					}
					if diff := cmp.Diff(want, describe(ns)); diff != "" {
						t.Errorf("conditions (-want +got):\n%s", diff)
					}
				}
				failing = false
				if err := d.Delete(t.Context(), s.get("ns"), time.Time{}, progress); err != nil {
					t.Error(err)
				}
				finalizers := s.get("ns").Spec.Finalizers
				if diff := cmp.Diff([]v1.FinalizerName{"example.com/other"}, finalizers); diff != "" || len(s.names(events)) > 0 {
					t.Errorf("events %v are left; finalizers (-want +got):\n%s", s.names(events), diff)
				}
			})
		}
	}
}

// TestConflicts has someone else write to the Namespace before each write.
func TestConflicts(t *testing.T) {
	for _, conflicts := range []int{1, maxConflicts - 1, maxConflicts} {
		for _, subresource := range []string{"namespaces/finalize", "namespaces/status"} {
			t.Run(fmt.Sprint(subresource, conflicts), func(t *testing.T) {
				s := newServer(t)
				s.addForeign()
				ns := s.terminating(func(ns *v1.Namespace) {
					if subresource == "namespaces/status" {
						ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other")
					}
				})
				left := conflicts
				s.before = func(_, resource, _ string) error {
					if resource == subresource && left > 0 {
						left--
						s.mu.Lock()
						defer s.mu.Unlock()
						other := s.namespaces["ns"].DeepCopy()
						other.Labels["written"] = fmt.Sprint(left)
						s.store(other)
					}
					return nil
				}
				err := s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{})
				stored := s.get("ns")
				if conflicts == maxConflicts {
					if err == nil || !strings.Contains(err.Error(), "stopped after 5 conflicts") {
						t.Errorf("got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if stored != nil && (len(stored.Spec.Finalizers) != 1 || stored.Labels["written"] != "0") {
					t.Errorf("left %v with labels %v", stored.Spec.Finalizers, stored.Labels)
				}
			})
		}
	}
}

// TestFinalizerBeforeRemoval has another client set a finalizer right before the Namespace is
// removed. It stays.
func TestFinalizerBeforeRemoval(t *testing.T) {
	for _, finalizer := range []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "example.com/other"} {
		t.Run(finalizer, func(t *testing.T) {
			s := newServer(t)
			ns := s.terminating(func(ns *v1.Namespace) { ns.Spec.Finalizers = nil })
			s.before = func(verb, resource, _ string) error {
				if verb == "delete" && resource == "namespaces" {
					s.mu.Lock()
					defer s.mu.Unlock()
					held := s.namespaces["ns"].DeepCopy()
					held.Finalizers = []string{finalizer}
					s.store(held)
				}
				return nil
			}
			if err := s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{}); err != nil {
				t.Error(err)
			}
			if got := s.get("ns"); got == nil || !slices.Equal(got.Finalizers, []string{finalizer}) {
				t.Errorf("the Namespace is %v", got)
			}
		})
	}
}

// TestContentUnseen finalizes a Namespace with content that no list shows. It stays, and the
// next pass, which deletes it, reports why.
func TestContentUnseen(t *testing.T) {
	s := newServer(t)
	ns := s.terminating()
	s.add(schema.GroupVersionResource{Group: "new.example.com", Version: "v1", Resource: "things"}, object("x"))
	if err := s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{}); err != nil {
		t.Error(err)
	}
	got := s.get("ns")
	if got == nil || len(got.Spec.Finalizers) != 0 {
		t.Fatalf("got %v", got)
	}
	err := s.deleter().Delete(t.Context(), got, time.Time{}, &Progress{})
	if err == nil || !strings.Contains(err.Error(), "things are left") {
		t.Errorf("got %v", err)
	}
	got = s.get("ns")
	const unknown = "Not all content could be read: resources that only the server sees"
	if lines := describe(got); !slices.Contains(lines, "NamespaceContentRemaining=Unknown ContentUnknown: "+unknown) {
		t.Errorf("conditions %v", lines)
	}
	if got := got.Status.Termination; got == nil || !strings.Contains(got.LastError, "things are left") {
		t.Errorf("termination %+v", got)
	}
}

// TestListExpires has a list expire between two pages; it starts again.
func TestListExpires(t *testing.T) {
	s := newServer(t)
	ns := s.terminating()
	for i := range pageSize + 2 {
		s.add(pods, object(fmt.Sprint(i), waits, deleted))
	}
	expired := false
	s.before = func(verb, _, what string) error {
		if verb == "list" && what != "" && !expired {
			expired = true
			s.mu.Lock()
			defer s.mu.Unlock()
			s.content[pods] = s.content[pods][2:]
			return apierrors.NewResourceExpired("too old")
		}
		return nil
	}
	var remaining *ContentRemainingError
	if err := s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{}); !errors.As(err, &remaining) {
		t.Fatal(err)
	}
	if got := len(remaining.Content[0].Objects); !expired || got != pageSize {
		t.Errorf("expired: %v, %d objects remain", expired, got)
	}
}
