// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestDeletionWithStuckNamespaces checks that Namespaces are deleted while fifty
// others are stuck, half of them with a Pod that has a finalizer, half with a
// LimitRange whose DELETE fails. It logs how long deleting an empty Namespace
// takes with and without the stuck ones.
func TestDeletionWithStuckNamespaces(t *testing.T) {
	t.Parallel()
	b, faults := startWithFaults(t)
	namespaces := b.Client(t).TenancyV1().Namespaces()
	const deletions = 30
	alone := timeDeletions(t, b, deletions)

	held, rejected := make([]string, 25), make([]string, 25)
	for i := range held {
		held[i], rejected[i] = newNamespace(t, b), newNamespace(t, b)
		createPod(t, b, held[i], newPod("held", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
		createLimitRange(t, b, rejected[i], newLimitRange("l"))
		in := api + "/namespaces/" + rejected[i]
		faults.set("POST "+in+"/namespacepurges", forbidden)
		faults.set("DELETE "+in+"/limitranges/l", forbidden)
	}
	stuck := slices.Concat(held, rejected)
	for _, name := range stuck {
		deleteNamespace(t, b, name)
	}
	for _, name := range stuck {
		poll.Eventually(t, func() string {
			ns, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case err != nil:
				return err.Error()
			case ns.Status.Termination == nil:
				return fmt.Sprintf("Namespace %s has no status.termination", name)
			}
			return ""
		})
	}

	withStuck := timeDeletions(t, b, deletions)
	t.Logf("deleting a Namespace: p50 %s, p90 %s; with %d stuck Namespaces: p50 %s, p90 %s",
		alone[deletions/2], alone[deletions*9/10], len(stuck), withStuck[deletions/2], withStuck[deletions*9/10])

	faults.clear()
	for _, name := range held {
		patch := []byte(`{"metadata": {"finalizers": null}}`)
		if _, err := b.Client(t).TenancyV1().Pods(name).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range stuck {
		poll.Eventually(t, gone(t, b, name))
	}
}

// TestDeletionWithoutAPIService deletes a Namespace while the controller gets 404 for
// everything but its watch, as from a kube-apiserver without the APIService. The Namespace
// is removed when there is one again.
func TestDeletionWithoutAPIService(t *testing.T) {
	t.Parallel()
	b, faults := startWithFaults(t)
	ns := newNamespace(t, b)
	createPod(t, b, ns, newPod("web"))
	passes := make(chan struct{}, 2)
	noPurge := func(w http.ResponseWriter, r *http.Request) {
		http.NotFound(w, r)
		select {
		case passes <- struct{}{}:
		default:
		}
	}
	path := api + "/namespaces/" + ns
	faults.set("POST "+path+"/namespacepurges", noPurge)
	for _, request := range []string{"GET " + path, "PUT " + path + "/status", "GET " + path + "/pods", "GET " + path + "/limitranges", "GET " + path + "/resourcequotas"} {
		faults.set(request, http.NotFound)
	}
	deleteNamespace(t, b, ns)
	for range 2 {
		select {
		case <-passes:
		case <-time.After(time.Minute):
			t.Fatal("the controller has forgotten the Namespace")
		}
	}
	faults.clear()
	poll.Eventually(t, gone(t, b, ns))
}

// timeDeletions deletes n empty Namespaces, one after the other. It returns the
// times until they were removed, the shortest first.
func timeDeletions(t *testing.T, b *harness.Borough, n int) []time.Duration {
	t.Helper()
	ctx, namespaces := t.Context(), b.Client(t).TenancyV1().Namespaces()
	took := make([]time.Duration, n)
	for i := range took {
		ns, err := namespaces.Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		watcher, err := namespaces.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + ns.Name, ResourceVersion: ns.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for {
			event, ok := <-watcher.ResultChan()
			if !ok {
				t.Fatalf("Namespace %s was not removed: %v", ns.Name, context.Cause(ctx))
			}
			if event.Type == watch.Deleted {
				break
			}
		}
		took[i] = time.Since(began)
		watcher.Stop()
	}
	slices.Sort(took)
	return took
}
