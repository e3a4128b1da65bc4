// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"errors"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// failOnce returns a server.before that fails the first such request.
func failOnce(verb, resource string) func(verb, resource, what string) error {
	var failed atomic.Bool
	return func(v, r, _ string) error {
		if v != verb || r != resource || failed.Swap(true) {
			return nil
		}
		return unavailable()
	}
}

// TestFailures deletes while the server refuses or cannot serve a part of it.
func TestFailures(t *testing.T) {
	testDeletions(t, []deletionCase{
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
			name: "content that only the server sees is unknown if the purge is refused",
			server: func(s *server) {
				s.discovered.Standalone = true
				s.add(limitRanges, object("l", waits))
				s.add(events, object("e", finalizers("example.com/f")))
				s.before = func(verb, _, _ string) error {
					if verb == "create" {
						return forbidden(pods)
					}
					return nil
				}
			},
			stays: true,
			waits: []string{"limitranges"},
			err:   "content remains: 1 limitranges.tenancy.borough.io",
			left:  map[schema.GroupVersionResource][]string{limitRanges: {"l"}, events: {"e"}},
			conditions: []string{
				discoveryFine, parsingFine,
				"NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: purge the namespace: pods.tenancy.borough.io is forbidden: no",
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: limitranges.tenancy.borough.io has 1 resource instances",
				"NamespaceFinalizersRemaining=Unknown ContentUnknown: Not all content could be read: resources that only the server sees",
			},
		},
		{
			name:      "content that cannot be read blocks the finalizer, although another holds the namespace",
			namespace: func(ns *v1.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other") },
			server: func(s *server) {
				s.before = func(verb, _, _ string) error {
					if verb == "create" {
						return unread(limitRanges)
					}
					return nil
				}
			},
			requests: []string{"list limitranges", "list pods", "update namespaces/status"},
			stays:    true,
			err:      "purge the namespace: limitranges.tenancy.borough.io cannot be read",
			conditions: []string{
				discoveryFine, parsingFine,
				"NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: purge the namespace: limitranges.tenancy.borough.io cannot be read",
				"NamespaceContentRemaining=Unknown ContentUnknown: Not all content could be read: limitranges.tenancy.borough.io",
				"NamespaceFinalizersRemaining=Unknown ContentUnknown: Not all content could be read: limitranges.tenancy.borough.io",
			},
		},
		{
			name: "a list that failed before a purge does not count after it",
			namespace: func(ns *v1.Namespace) {
				remaining(ns)
				ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other")
			},
			server:     func(s *server) { s.before = failOnce("list", "limitranges") },
			requests:   []string{"list pods", "create namespacepurges", "update namespaces/finalize", "update namespaces/status"},
			stays:      true,
			conditions: []string{discoveryFine, parsingFine, deletionFine, contentGone, noFinalizers},
		},
		{
			name:      "nor if the purge left something",
			namespace: remaining,
			server: func(s *server) {
				s.add(limitRanges, object("l", finalizers("example.com/f")))
				s.before = failOnce("list", "limitranges")
			},
			stays: true,
			waits: []string{"limitranges"},
			err:   "content remains: 1 limitranges.tenancy.borough.io",
			conditions: []string{
				discoveryFine, parsingFine, deletionFine,
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: limitranges.tenancy.borough.io has 1 resource instances",
				"NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/f in 1 resource instances",
			},
		},
		{
			name:      "nor if the purge stopped at a Pod",
			namespace: remaining,
			server: func(s *server) {
				s.add(pods, object("a", waits))
				s.before = failOnce("list", "limitranges")
			},
			stays: true,
			waits: []string{"pods"},
			err:   "content remains: 1 pods.tenancy.borough.io",
			conditions: []string{
				discoveryFine, parsingFine, deletionFine,
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: pods.tenancy.borough.io has 1 resource instances",
				noFinalizers,
			},
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
	})
}
