// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestRemaining deletes Namespaces with what holds them up.
func TestRemaining(t *testing.T) {
	testDeletions(t, []deletionCase{
		{
			name:       "a namespace with the finalizer of another agent is not finalized by the purge",
			namespace:  func(ns *v1.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other") },
			requests:   []string{"create namespacepurges", "update namespaces/finalize", "update namespaces/status"},
			stays:      true,
			conditions: []string{discoveryFine, parsingFine, deletionFine, contentGone, noFinalizers},
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
			name: "content that only the server sees is unknown while pods are deleted first",
			server: func(s *server) {
				s.discovered.Standalone = true
				s.add(pods, object("a", waits))
				s.add(events, object("e", finalizers("example.com/f")))
			},
			stays: true,
			waits: []string{"pods"},
			err:   "content remains: 1 pods.tenancy.borough.io",
			left:  map[schema.GroupVersionResource][]string{pods: {"a"}, events: {"e"}},
			conditions: []string{
				discoveryFine, parsingFine,
				"NamespaceDeletionContentFailure=False ContentDeleted: All pods successfully deleted, may be waiting on finalization; other content follows when no pod is left",
				"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: pods.tenancy.borough.io has 1 resource instances",
				"NamespaceFinalizersRemaining=Unknown ContentUnknown: Not all content could be read: resources that only the server sees",
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
			name: "a list of several pages",
			server: func(s *server) {
				for i := range 2*pageSize + 1 {
					s.add(pods, object(fmt.Sprint(i), waits))
				}
			},
			requests: []string{
				"create namespacepurges", "list pods", "list pods 100", "list pods 200",
				"list limitranges", "update namespaces/status",
			},
			stays: true,
			waits: []string{"pods"},
			err:   "content remains: 201 pods.tenancy.borough.io",
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
	})
}
