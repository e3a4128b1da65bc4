// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

// TestStatusWrites counts the writes of the status during a termination: none if
// the Namespace is deleted without delay, a few if it drains slowly.
func TestStatusWrites(t *testing.T) {
	t.Parallel()
	namespaces := borough.Client(t).TenancyV1().Namespaces()
	const slow = 40
	clean, drains := newNamespace(t, borough), newNamespace(t, borough)
	for i := range slow {
		createPod(t, borough, clean, newPod(fmt.Sprintf("p%d", i)))
		createPod(t, borough, drains, newPod(fmt.Sprintf("p%d", i), func(p *v1.Pod) { p.Finalizers = []string{fmt.Sprintf("example.com/%d", i)} }))
	}
	follow := func(name string) *atomic.Int32 {
		statuses := &atomic.Int32{}
		ns, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		watcher, err := namespaces.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: ns.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watcher.Stop)
		go func() {
			last := ns.Status
			for event := range watcher.ResultChan() {
				ns, ok := event.Object.(*v1.Namespace)
				if !ok || event.Type == watch.Deleted {
					statuses.Add(1000)
					return
				}
				// The first DELETE writes the phase.
				ns.Status.Phase = v1.NamespaceActive
				if !equality.Semantic.DeepEqual(last, ns.Status) {
					last = ns.Status
					statuses.Add(1)
				}
			}
		}()
		return statuses
	}
	cleanWrites, drainWrites := follow(clean), follow(drains)
	deleteNamespace(t, borough, clean)
	deleteNamespace(t, borough, drains)
	poll.Eventually(t, gone(t, borough, clean))
	wantReason(t, borough, drains, waitReason{get: []string{`40 pods \(finalizer example.com/\d+, example.com/\d+, 3 more\)$`}})
	for i := range slow {
		removeFinalizers(t, borough, drains, fmt.Sprintf("p%d", i))
	}
	poll.Eventually(t, gone(t, borough, drains))
	ended := func(statuses *atomic.Int32) func() string {
		return func() string {
			if statuses.Load() < 1000 {
				return "the watch has not ended"
			}
			return ""
		}
	}
	poll.Eventually(t, ended(cleanWrites))
	poll.Eventually(t, ended(drainWrites))
	if n := cleanWrites.Load() - 1000; n != 0 {
		t.Errorf("got %d writes of the status for a Namespace that was deleted without delay, want none", n)
	}
	if n := drainWrites.Load() - 1000; n < 1 || n > 8 {
		t.Errorf("got %d writes of the status while %d objects were removed one by one, want 1 to 8", n, slow)
	}
}

// TestTerminationNeverUndercounts removes content in different ways, and checks
// that no status that is written counts less content than is left.
func TestTerminationNeverUndercounts(t *testing.T) {
	t.Parallel()
	client := borough.Client(t).TenancyV1()
	ns := newNamespace(t, borough)
	for i := range 20 {
		createPod(t, borough, ns, newPod(fmt.Sprintf("p%d", i), func(p *v1.Pod) {
			switch i % 3 {
			case 0:
				p.Finalizers = []string{"example.com/a"}
			case 1:
				p.Spec.NodeName = "n"
			}
		}))
	}
	// One stays until there is a status.
	createPod(t, borough, ns, newPod("last", func(p *v1.Pod) { p.Finalizers = []string{"example.com/a"} }))
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1")))
	watcher, err := client.Namespaces().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + ns})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	deleteNamespace(t, borough, ns)
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() {
		for i := range 20 {
			name := fmt.Sprintf("p%d", i)
			var err error
			switch i % 3 {
			case 0:
				_, err = client.Pods(ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			case 1:
				err = client.Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			}
			if err != nil {
				t.Errorf("release Pod %s: %v", name, err)
			}
		}
	})
	statuses := 0
	for event := range watcher.ResultChan() {
		got, ok := event.Object.(*v1.Namespace)
		if !ok || event.Type == watch.Deleted {
			break
		}
		termination := got.Status.Termination
		if termination == nil {
			continue
		}
		if statuses++; statuses == 1 {
			removeFinalizers(t, borough, ns, "last")
		}
		// Content that is left now was also left when the status was written.
		pods, limitRanges := countContent(t, borough, ns)
		for resource, left := range map[string]int{"pods": pods, "limitranges": limitRanges} {
			count := int64(0)
			for _, r := range termination.Remaining {
				if r.Resource == resource {
					count = ptr.Deref(r.Count, 1<<62)
				}
			}
			if count < int64(left) {
				t.Errorf("%d %s are left, but the status has a count of %d", left, resource, count)
			}
		}
		for _, c := range got.Status.Conditions {
			if c.Type == v1.NamespaceContentRemaining && c.Status == corev1.ConditionFalse && pods+limitRanges > 0 {
				t.Errorf("%s, but %d Pods are left", c.Message, pods)
			}
		}
		wantEqual(t, "finalizers in the status", termination.SpecFinalizers, got.Spec.Finalizers)
	}
	if statuses == 0 {
		t.Error("the watch returned no status")
	}
}
