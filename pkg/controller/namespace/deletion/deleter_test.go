// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// describe writes conditions as lines, without times.
func describe(ns *v1.Namespace) []string {
	var lines []string
	if ns != nil {
		for _, c := range ns.Status.Conditions {
			lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return lines
}

const (
	discoveryFine = "NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered: All resources successfully discovered"
	parsingFine   = "NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions: All legacy kube types successfully parsed"
	deletionFine  = "NamespaceDeletionContentFailure=False ContentDeleted: All content successfully deleted, may be waiting on finalization"
	contentGone   = "NamespaceContentRemaining=False ContentRemoved: All content successfully removed"
	noFinalizers  = "NamespaceFinalizersRemaining=False ContentHasNoFinalizers: All content-preserving finalizers finished"
)

// remaining is the status of a Namespace that an earlier pass could not empty.
func remaining(ns *v1.Namespace) {
	ns.Status.Termination = &v1.NamespaceTermination{Remaining: []v1.RemainingResource{{Group: v1.GroupName, Resource: "pods"}}}
}

func TestDelete(t *testing.T) {
	tests := []struct {
		name      string
		namespace func(*v1.Namespace)
		server    func(*server)

		requests   []string // in order; nil to leave out
		err        string   // a part of it; empty for success
		waits      []string // the kinds of a ContentRemainingError
		stays      bool     // the Namespace is still there
		conditions []string // of the Namespace, if it stays
		left       map[schema.GroupVersionResource][]string
		counted    int
	}{
		{
			name:     "an empty namespace takes one request and no status",
			requests: []string{"create namespacepurges"},
		},
		{
			name:     "a server that does not finalize with a purge",
			server:   func(s *server) { s.older = true },
			requests: []string{"create namespacepurges", "create namespacepurges", "update namespaces/finalize"},
		},
		{
			name:       "a namespace with the finalizer of another agent is not finalized by the purge",
			namespace:  func(ns *v1.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other") },
			requests:   []string{"create namespacepurges", "update namespaces/finalize", "update namespaces/status"},
			stays:      true,
			conditions: []string{discoveryFine, parsingFine, deletionFine, contentGone, noFinalizers},
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
			name: "a purge that is refused is done object by object",
			server: func(s *server) {
				s.add(pods, object("a"))
				s.add(limitRanges, object("l"))
				s.before = func(verb, resource, what string) error {
					if verb == "create" {
						return forbidden(v1.SchemeGroupVersion.WithResource("namespacepurges"))
					}
					return nil
				}
			},
			requests: []string{
				"list pods", "get namespaces", "delete pods a", "list pods",
				"list limitranges", "get namespaces", "delete limitranges l", "list limitranges",
				"update namespaces/finalize",
			},
			counted: 2,
		},
		{
			name: "of what is refused, each object is named",
			server: func(s *server) {
				s.add(pods, object("a"), object("b"), object("c"))
				s.add(limitRanges, object("l"))
				s.before = func(verb, resource, what string) error {
					if verb == "create" || what == "b" {
						return forbidden(pods)
					}
					return nil
				}
			},
			stays:   true,
			waits:   []string{"pods"},
			err:     `delete pods.tenancy.borough.io "b": pods.tenancy.borough.io is forbidden: no`,
			left:    map[schema.GroupVersionResource][]string{pods: {"b"}, limitRanges: {"l"}},
			counted: 2,
			conditions: []string{
				discoveryFine, parsingFine,
				`NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: delete pods.tenancy.borough.io "b": pods.tenancy.borough.io is forbidden: no`,
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: limitranges.tenancy.borough.io has 1 resource instances, pods.tenancy.borough.io has 1 resource instances",
				noFinalizers,
			},
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
			name: "a Pod of another group holds up the other content of other groups",
			server: func(s *server) {
				s.discoverForeign()
				s.add(corePods, object("a", waits))
				s.add(things, object("x"))
			},
			stays: true,
			waits: []string{"pods"},
			err:   "content remains: 1 pods",
			left:  map[schema.GroupVersionResource][]string{pods: nil, limitRanges: nil, corePods: {"a"}, things: {"x"}},
		},
		{
			name: "a deletecollection that is refused is done object by object",
			server: func(s *server) {
				s.discoverForeign()
				s.add(things, object("x"), object("y"))
				s.before = func(verb, resource, what string) error {
					if verb == "deletecollection" || what == "y" {
						return forbidden(things)
					}
					return nil
				}
			},
			stays:   true,
			waits:   []string{"things"},
			err:     `delete things.example.com "y": things.example.com is forbidden: no`,
			left:    map[schema.GroupVersionResource][]string{things: {"y"}},
			counted: 1,
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
			name: "a server that cannot serve is not asked object by object",
			server: func(s *server) {
				s.add(limitRanges, object("l"))
				s.before = func(verb, resource, what string) error {
					if verb == "create" {
						return unavailable()
					}
					return nil
				}
			},
			requests: []string{"list limitranges", "list pods", "update namespaces/status"}, // in any order
			stays:    true,
			waits:    []string{"limitranges"},
			err:      "purge the namespace: ",
			left:     map[schema.GroupVersionResource][]string{limitRanges: {"l"}},
			conditions: []string{
				discoveryFine, parsingFine,
				"NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: purge the namespace: the server is currently unable to handle the request",
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: limitranges.tenancy.borough.io has 1 resource instances",
				noFinalizers,
			},
		},
		{
			name: "the status is correct while pods are deleted first",
			server: func(s *server) {
				s.add(pods, object("a", waits), object("b", finalizers("example.com/f")), object("c"))
				s.add(limitRanges, object("l", finalizers("example.com/e")))
			},
			stays: true,
			waits: []string{"pods"},
			err:   "content remains: 2 pods.tenancy.borough.io",
			left:  map[schema.GroupVersionResource][]string{pods: {"a", "b"}, limitRanges: {"l"}},
			conditions: []string{
				discoveryFine, parsingFine,
				"NamespaceDeletionContentFailure=False ContentDeleted: All pods successfully deleted, may be waiting on finalization; other content follows when no pod is left",
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: limitranges.tenancy.borough.io has 1 resource instances, pods.tenancy.borough.io has 2 resource instances",
				"NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/e in 1 resource instances, example.com/f in 1 resource instances",
			},
			counted: 1,
		},
		{
			name: "pods that could not be listed hold up the others",
			server: func(s *server) {
				s.add(limitRanges, object("l"))
				s.before = func(verb, resource, what string) error {
					if resource == "pods" || verb == "create" {
						return unavailable()
					}
					return nil
				}
			},
			stays: true,
			err:   "purge the namespace: ",
			left:  map[schema.GroupVersionResource][]string{limitRanges: {"l"}},
			conditions: []string{
				discoveryFine, parsingFine,
				"NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: [purge the namespace: the server is currently unable to handle the request, list pods.tenancy.borough.io: the server is currently unable to handle the request]",
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: limitranges.tenancy.borough.io has 1 resource instances",
				"NamespaceFinalizersRemaining=Unknown ContentUnknown: Not all content could be read: pods.tenancy.borough.io",
			},
		},
		{
			name: "other content that waits for a finalizer",
			server: func(s *server) {
				s.add(pods, object("a"))
				s.add(limitRanges, object("l", finalizers("example.com/f")))
			},
			stays:   true,
			waits:   []string{"limitranges"},
			err:     "content remains: 1 limitranges.tenancy.borough.io",
			left:    map[schema.GroupVersionResource][]string{limitRanges: {"l"}},
			counted: 1,
			conditions: []string{
				discoveryFine, parsingFine, deletionFine,
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: limitranges.tenancy.borough.io has 1 resource instances",
				"NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/f in 1 resource instances",
			},
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
			name: "what was deleted with another propagation is asked again",
			server: func(s *server) {
				s.add(pods, object("a", finalizers(metav1.FinalizerOrphanDependents), deleted))
				s.add(limitRanges, object("l", finalizers(metav1.FinalizerDeleteDependents), deleted))
			},
			counted: 2,
		},
		{
			name: "a list of several pages",
			server: func(s *server) {
				for i := range 2*pageSize + 1 {
					s.add(pods, object(fmt.Sprint(i), waits))
				}
			},
			requests: []string{
				"create namespacepurges", "list pods", "list pods 500", "list pods 1000",
				"list limitranges", "update namespaces/status",
			},
			stays: true,
			waits: []string{"pods"},
			err:   "content remains: 1001 pods.tenancy.borough.io",
		},
		{
			name: "another agent's finalizer is left, and the status says that the content is gone",
			namespace: func(ns *v1.Namespace) {
				ns.Spec.Finalizers = []v1.FinalizerName{"openshift.com/origin", v1.FinalizerKubernetes}
			},
			requests:   []string{"create namespacepurges", "update namespaces/finalize", "update namespaces/status"},
			stays:      true,
			conditions: []string{discoveryFine, parsingFine, deletionFine, contentGone, noFinalizers},
		},
		{
			name: "a finalizer in the metadata holds the namespace too",
			namespace: func(ns *v1.Namespace) {
				ns.Finalizers = []string{"example.com/f"}
			},
			requests:   []string{"create namespacepurges", "update namespaces/finalize", "update namespaces/status"},
			stays:      true,
			conditions: []string{discoveryFine, parsingFine, deletionFine, contentGone, noFinalizers},
		},
		{
			name: "nothing is left to do but for others",
			namespace: func(ns *v1.Namespace) {
				ns.Spec.Finalizers = []v1.FinalizerName{"openshift.com/origin"}
				setConditions(&ns.Status, (&findings{}).conditions(), metav1.NewTime(testTime))
				setTermination(&ns.Status, (&findings{}).termination(), testTime)
			},
			requests:   []string{"create namespacepurges"},
			stays:      true,
			conditions: []string{discoveryFine, parsingFine, deletionFine, contentGone, noFinalizers},
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
			name: "a group that cannot be discovered blocks the finalizer, not the rest",
			server: func(s *server) {
				s.add(limitRanges, object("l"))
				s.discovered.Failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
					{Group: "b.example.com", Version: "v1"}: errors.New("no"),
					{Group: "a.example.com", Version: "v1"}: errors.New("neither"),
				}}
			},
			stays:   true,
			err:     "unable to retrieve the complete list of server APIs: a.example.com/v1: neither, b.example.com/v1: no",
			counted: 1,
			conditions: []string{
				"NamespaceDeletionDiscoveryFailure=True DiscoveryFailed: Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: a.example.com/v1: neither, b.example.com/v1: no",
				parsingFine, deletionFine,
				"NamespaceContentRemaining=Unknown ContentUnknown: Not all content could be read: resources that could not be discovered",
				"NamespaceFinalizersRemaining=Unknown ContentUnknown: Not all content could be read: resources that could not be discovered",
			},
		},
		{
			name:   "so does a group version that cannot be parsed",
			server: func(s *server) { s.discovered.ParseFailure = errors.New("parse group version \"a/b/c\"") },
			stays:  true,
			err:    "parse group version",
			conditions: []string{
				discoveryFine,
				`NamespaceDeletionGroupVersionParsingFailure=True GroupVersionParsingFailed: parse group version "a/b/c"`,
				deletionFine,
				"NamespaceContentRemaining=Unknown ContentUnknown: Not all content could be read: resources that could not be discovered",
				"NamespaceFinalizersRemaining=Unknown ContentUnknown: Not all content could be read: resources that could not be discovered",
			},
		},
		{
			name:      "a namespace that is not being deleted is left alone",
			namespace: func(ns *v1.Namespace) { ns.DeletionTimestamp = nil },
			server:    func(s *server) { s.add(pods, object("a")) },
			requests:  []string{},
			stays:     true,
			left:      map[schema.GroupVersionResource][]string{pods: {"a"}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			ns := s.terminating(func(ns *v1.Namespace) {
				if tc.namespace != nil {
					tc.namespace(ns)
				}
			})
			if tc.server != nil {
				tc.server(s)
			}
			err := s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{})

			if tc.err == "" && err != nil {
				t.Errorf("failed: %v", err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got error %v, want %q", err, tc.err)
			}
			var remaining *ContentRemainingError
			var waits []string
			if errors.As(err, &remaining) {
				for _, r := range remaining.Content {
					waits = append(waits, r.GroupVersionResource.Resource)
				}
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("kinds that wait (-want +got):\n%s", diff)
			}
			if tc.requests != nil {
				// The first lists are sent side by side.
				got := slices.Clone(s.requests)
				if len(got) > 1 && strings.HasPrefix(got[0], "list ") && strings.HasPrefix(got[1], "list ") {
					slices.Sort(got[:2])
				}
				if diff := cmp.Diff(tc.requests, got, cmpEmpty); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			}
			stored := s.get("ns")
			if stays := stored != nil; stays != tc.stays {
				t.Errorf("the namespace stays: %v, want %v", stays, tc.stays)
			}
			if tc.conditions != nil {
				if diff := cmp.Diff(tc.conditions, describe(stored)); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			}
			if tc.left != nil {
				for _, gvr := range []schema.GroupVersionResource{pods, limitRanges, corePods, things} {
					if diff := cmp.Diff(tc.left[gvr], s.names(gvr)); diff != "" {
						t.Errorf("%s left (-want +got):\n%s", gvr.Resource, diff)
					}
				}
			}
			if tc.stays && stored != nil && stored.Labels["l"] != "v" {
				t.Error("the namespace lost its labels")
			}
			if s.counted != tc.counted {
				t.Errorf("counted %d purged objects, want %d", s.counted, tc.counted)
			}
		})
	}
}

var cmpEmpty = cmp.Transformer("empty", func(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
})
