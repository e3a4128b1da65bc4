// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestContent checks what is deleted, and in which order.
func TestContent(t *testing.T) {
	testDeletions(t, []deletionCase{
		{
			name:     "an empty namespace takes one request and no status",
			requests: []string{"create namespacepurges"},
		},
		{
			name: "pods go before the others",
			server: func(s *server) {
				s.add(pods, object("a"), object("b"))
				s.add(limitRanges, object("l"))
			},
			requests: []string{
				"create namespacepurges",
			},
			counted: 3,
		},
		{
			name:      "where something is known to remain, it is looked at first",
			namespace: remaining,
			server: func(s *server) {
				s.add(pods, object("a"), object("b"))
				s.add(limitRanges, object("l"))
			},
			requests: []string{
				"list limitranges", "list pods",
				"create namespacepurges",
			},
			counted: 3,
		},
		{
			name: "content of other groups follows by deletecollection, Pods first",
			server: func(s *server) {
				s.discoverForeign()
				s.add(corePods, object("a"))
				s.add(things, object("x"), object("y"))
			},
			requests: []string{
				"list pods", "list things", "create namespacepurges",
				"get namespaces", "deletecollection pods", "list pods",
				"get namespaces", "deletecollection things", "list things",
				"update namespaces/finalize",
			},
			counted: 3,
		},
		{
			name: "the last Pod goes right after the purge",
			server: func(s *server) {
				s.add(pods, object("a", waits))
				s.add(limitRanges, object("l"))
				s.before = func(verb, resource, _ string) error {
					if verb == "list" && resource == "pods" {
						s.mu.Lock()
						defer s.mu.Unlock()
						s.content[pods] = nil
					}
					return nil
				}
			},
			requests: []string{"create namespacepurges", "list pods", "list limitranges", "create namespacepurges"},
			counted:  1,
		},
		{
			name:      "what was asked to go is not asked again",
			namespace: remaining,
			server: func(s *server) {
				s.add(pods, object("a", waits, deleted), object("b", finalizers("example.com/f"), deleted))
			},
			requests: []string{"list limitranges", "list pods", "update namespaces/status"},
			stays:    true,
			waits:    []string{"pods"},
			err:      "content remains: 2 pods.tenancy.borough.io",
			left:     map[schema.GroupVersionResource][]string{pods: {"a", "b"}},
		},
		{
			name:      "what was marked, but not removed, is asked again",
			namespace: remaining,
			server:    func(s *server) { s.add(pods, object("a", deleted)) },
			requests:  []string{"list limitranges", "list pods", "create namespacepurges"},
			counted:   1,
		},
		{
			name: "what was deleted with another propagation is asked again",
			server: func(s *server) {
				s.add(pods, object("a", finalizers(metav1.FinalizerOrphanDependents), deleted))
				s.add(limitRanges, object("l", finalizers(metav1.FinalizerDeleteDependents), deleted))
			},
			counted: 2,
		},
		{
			name:      "a namespace that another client has finalized is purged and removed",
			namespace: func(ns *v1.Namespace) { ns.Spec.Finalizers = nil },
			server:    func(s *server) { s.add(limitRanges, object("l")) },
			requests: []string{
				"create namespacepurges",
				"delete namespaces",
			},
			counted: 1,
		},
		{
			name:      "a namespace that is not being deleted is left alone",
			namespace: func(ns *v1.Namespace) { ns.DeletionTimestamp = nil },
			server:    func(s *server) { s.add(pods, object("a")) },
			requests:  []string{},
			stays:     true,
			left:      map[schema.GroupVersionResource][]string{pods: {"a"}},
		},
	})
}

// TestFinalizers checks how many finalizers of an object are considered.
func TestFinalizers(t *testing.T) {
	object := &metav1.PartialObjectMetadata{}
	for i := range 150 {
		object.Finalizers = append(object.Finalizers, fmt.Sprint("example.com/", i))
	}
	if got := Finalizers(object); !slices.Equal(got, object.Finalizers[:100]) || cap(got) > 150 {
		t.Errorf("got %d finalizers in a list of %d", len(got), cap(got))
	}
	object.Finalizers = object.Finalizers[:100]
	if got := Finalizers(object); !slices.Equal(got, object.Finalizers) {
		t.Errorf("got %v", got)
	}
}
