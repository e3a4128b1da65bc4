// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// deleteNamespace deletes a Namespace. It does not wait until it is removed.
func deleteNamespace(t *testing.T, b *harness.Borough, name string) {
	t.Helper()
	if err := b.Client(t).TenancyV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete Namespace %s: %v", name, err)
	}
}

// wantNoContent fails the test if a Namespace has content.
func wantNoContent(t *testing.T, b *harness.Borough, ns string) {
	t.Helper()
	if pods, limitRanges := countContent(t, b, ns); pods+limitRanges > 0 {
		t.Errorf("%d Pods and %d LimitRanges are left in Namespace %s", pods, limitRanges, ns)
	}
}

// countContent returns the numbers of Pods and of LimitRanges in a Namespace.
func countContent(t *testing.T, b *harness.Borough, ns string) (pods, limitRanges int) {
	t.Helper()
	client := b.Client(t).TenancyV1()
	podList, err := client.Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limitRangeList, err := client.LimitRanges(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(podList.Items), len(limitRangeList.Items)
}

// hasConditions returns a condition for Eventually: the Namespace has the given
// conditions, which map a type to a status and a part of the message.
func hasConditions(t *testing.T, b *harness.Borough, name string, want map[v1.NamespaceConditionType][2]string) func() string {
	namespaces := b.Client(t).TenancyV1().Namespaces()
	return func() string {
		ns, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for kind, want := range want {
			at := slices.IndexFunc(ns.Status.Conditions, func(c v1.NamespaceCondition) bool { return c.Type == kind })
			if at < 0 {
				return fmt.Sprintf("condition %s is missing: %+v", kind, ns.Status.Conditions)
			}
			got := ns.Status.Conditions[at]
			if string(got.Status) != want[0] || want[1] != "" && got.Message != want[1] {
				return fmt.Sprintf("got the condition %+v, want %v", got, want)
			}
		}
		return ""
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	empty, full := newNamespace(t, borough), newNamespace(t, borough)
	for i := range 30 {
		createPod(t, borough, full, newPod(fmt.Sprintf("p%d", i)))
	}
	createLimitRange(t, borough, full, newLimitRange("l", item("Container", "max cpu=1")))
	for _, ns := range []string{empty, full} {
		deleteNamespace(t, borough, ns)
		poll.Eventually(t, gone(t, borough, ns))
		wantNoContent(t, borough, ns)
	}
}

// TestPurgeMany deletes many Namespaces at the same time, while another one waits
// for a finalizer.
func TestPurgeMany(t *testing.T) {
	t.Parallel()
	stuck := newNamespace(t, borough)
	createPod(t, borough, stuck, newPod("p", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	deleteNamespace(t, borough, stuck)
	var names []string
	for range 25 {
		ns := newNamespace(t, borough)
		createPod(t, borough, ns, newPod("p"))
		names = append(names, ns)
	}
	for _, ns := range names {
		deleteNamespace(t, borough, ns)
	}
	for _, ns := range names {
		poll.Eventually(t, gone(t, borough, ns))
		wantNoContent(t, borough, ns)
	}
	if gone(t, borough, stuck)() == "" {
		t.Error("the Namespace that has a Pod with a finalizer was removed")
	}
	removeFinalizers(t, borough, stuck, "p")
	poll.Eventually(t, gone(t, borough, stuck))
}

// removeFinalizers removes the finalizers of a Pod.
func removeFinalizers(t *testing.T, b *harness.Borough, ns, name string) {
	t.Helper()
	if _, err := b.Client(t).TenancyV1().Pods(ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("remove the finalizers of Pod %s: %v", name, err)
	}
}

// TestContentWithFinalizers checks that the conditions count the remaining Pods
// and their finalizers.
func TestContentWithFinalizers(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	hold := func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }
	createPod(t, borough, ns, newPod("a", hold))
	createPod(t, borough, ns, newPod("b", hold))
	createPod(t, borough, ns, newPod("c"))
	deleteNamespace(t, borough, ns)
	poll.Eventually(t, hasConditions(t, borough, ns, map[v1.NamespaceConditionType][2]string{
		v1.NamespaceContentRemaining:         {"True", "Some resources are remaining: pods.tenancy.borough.io has 2 resource instances"},
		v1.NamespaceFinalizersRemaining:      {"True", "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances"},
		v1.NamespaceDeletionDiscoveryFailure: {"False", ""},
		v1.NamespaceDeletionContentFailure:   {"False", ""},
		v1.NamespaceDeletionGVParsingFailure: {"False", ""},
	}))
	removeFinalizers(t, borough, ns, "a")
	poll.Eventually(t, hasConditions(t, borough, ns, map[v1.NamespaceConditionType][2]string{
		v1.NamespaceContentRemaining:    {"True", "Some resources are remaining: pods.tenancy.borough.io has 1 resource instances"},
		v1.NamespaceFinalizersRemaining: {"True", "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"},
	}))
	removeFinalizers(t, borough, ns, "b")
	poll.Eventually(t, gone(t, borough, ns))
	wantNoContent(t, borough, ns)
}

// TestFinalizeWithContent removes the controller's finalizer while content is
// left. The Namespace must stay until its content is gone.
func TestFinalizeWithContent(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("p", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	deleteNamespace(t, borough, ns)
	if _, err := borough.Client(t).TenancyV1().Namespaces().Finalize(t.Context(), ns, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("finalize: %v", err)
	}
	if reason := gone(t, borough, ns)(); reason == "" {
		t.Fatal("the Namespace was removed before its content")
	}
	removeFinalizers(t, borough, ns, "p")
	poll.Eventually(t, gone(t, borough, ns))
	wantNoContent(t, borough, ns)
}

// TestPodsWithGracePeriod checks that a Namespace, and its other content, waits
// for Pods in their grace period.
func TestPodsWithGracePeriod(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	client := borough.Client(t).TenancyV1()
	createPod(t, borough, ns, newPod("running", func(p *v1.Pod) { p.Spec.NodeName = "n" }))
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1")))
	deleteNamespace(t, borough, ns)
	poll.Eventually(t, hasConditions(t, borough, ns, map[v1.NamespaceConditionType][2]string{
		v1.NamespaceContentRemaining: {"True", ""},
	}))
	pod, err := client.Pods(ns).Get(t.Context(), "running", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pod.DeletionTimestamp == nil {
		t.Error("the Pod has no deletionTimestamp")
	}
	if _, err := client.LimitRanges(ns).Get(t.Context(), "l", metav1.GetOptions{}); err != nil {
		t.Errorf("the LimitRange was deleted before the Pods: %v", err)
	}
	// The agent that runs the Pod confirms that it has ended.
	if err := client.Pods(ns).Delete(t.Context(), "running", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, gone(t, borough, ns))
	wantNoContent(t, borough, ns)
}

// TestRecreate deletes a Namespace and creates it again as soon as possible. The
// purge of the old Namespace must not affect the new one.
func TestRecreate(t *testing.T) {
	t.Parallel()
	client := borough.Client(t).TenancyV1()
	name := newNamespace(t, borough)
	for round := range 15 {
		for i := range 5 {
			createPod(t, borough, name, newPod(fmt.Sprintf("round-%d-%d", round, i)))
		}
		deleteNamespace(t, borough, name)
		poll.Eventually(t, func() string {
			_, err := client.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			if err != nil {
				return err.Error()
			}
			return ""
		})
		wantNoContent(t, borough, name)
		createPod(t, borough, name, newPod("survivor"))
	}
	// When another Namespace has been deleted, the controller has also processed
	// the earlier events.
	other := newNamespace(t, borough)
	deleteNamespace(t, borough, other)
	poll.Eventually(t, gone(t, borough, other))
	ns, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || ns.DeletionTimestamp != nil || ns.Status.Phase != v1.NamespaceActive {
		t.Errorf("got %+v (%v), want the new Namespace unchanged", ns, err)
	}
	if _, err := client.Pods(name).Get(t.Context(), "survivor", metav1.GetOptions{}); err != nil {
		t.Errorf("the Pod in the new Namespace: %v", err)
	}
}

// TestNoOrphans creates Pods as fast as possible while their Namespace is
// deleted, and checks that no Pod is left when the Namespace is gone.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	pods := func(ns string) interface {
		Create(context.Context, *v1.Pod, metav1.CreateOptions) (*v1.Pod, error)
	} {
		return borough.Client(t).TenancyV1().Pods(ns)
	}
	for range 3 {
		ns := newNamespace(t, borough)
		var workers sync.WaitGroup
		started := make(chan struct{}, 8)
		for worker := range 8 {
			client := pods(ns)
			workers.Go(func() {
				for i := 0; ; i++ {
					_, err := client.Create(t.Context(), newPod(fmt.Sprintf("w%d-%d", worker, i)), metav1.CreateOptions{})
					if i == 0 {
						started <- struct{}{}
					}
					if apierrors.IsForbidden(err) {
						continue // until the Namespace is gone
					}
					if apierrors.IsNotFound(err) || t.Context().Err() != nil {
						return
					}
					if err != nil {
						t.Errorf("create: %v", err)
						return
					}
				}
			})
		}
		for range 8 {
			<-started
		}
		deleteNamespace(t, borough, ns)
		poll.Eventually(t, gone(t, borough, ns))
		workers.Wait()
		wantNoContent(t, borough, ns)
	}
}

// TestPurgeAllGroups deletes a Namespace with content of each group of a standalone server
// while the controller purges all groups.
func TestPurgeAllGroups(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.StartController(t.Context(), "--purge-api-groups=*"); err != nil {
		t.Fatal(err)
	}
	ns, kubernetes := newNamespace(t, b), coreClient(t, b, "")
	createPod(t, b, ns, newPod("p"))
	createLimitRange(t, b, ns, newLimitRange("l", item("Container", "max cpu=1")))
	_, eventErr := kubernetes.CoreV1().Events(ns).Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: ns}}, metav1.CreateOptions{})
	_, leaseErr := kubernetes.CoordinationV1().Leases(ns).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{})
	_, bindingErr := kubernetes.RbacV1().RoleBindings(ns).Create(t.Context(), newRoleBinding("r", "ClusterRole", "view", "alice"), metav1.CreateOptions{})
	if err := errors.Join(eventErr, leaseErr, bindingErr); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, b, ns)
	poll.Eventually(t, gone(t, b, ns))
}

// TestControllerEndpoints checks the health checks and metrics of the controller.
func TestControllerEndpoints(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/healthz": "ok", "/livez": "ok", "/readyz": "ok", "/metrics": "workqueue_depth"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, borough.ControllerURL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s %v", path, response.Status, err)
		}
		wantContains(t, string(body), want)
	}
}

// TestControllerRestart deletes a Namespace while the controller is down.
func TestControllerRestart(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	createPod(t, b, ns, newPod("p", func(p *v1.Pod) { p.Status.Phase = corev1.PodPending }))
	b.Controller.Kill()
	deleteNamespace(t, b, ns)
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, gone(t, b, ns))
	wantNoContent(t, b, ns)
}
