// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

// patchPod sends a strategic merge patch of a Pod, and returns the error.
func patchPod(t *testing.T, ns, name, patch string, subresources ...string) error {
	t.Helper()
	_, err := borough.Client(t).TenancyV1().Pods(ns).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

// must fails the test if a write fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestQuotaOfEndedPods checks that a Pod that has succeeded or failed counts only as an
// object, and that it cannot run again without the quota for that.
func TestQuotaOfEndedPods(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "pods=1 count/pods=2 requests.cpu=1"))
	pod := func(name string) *v1.Pod { return newPod(name, withResources(quantities("cpu=1"), nil)) }
	createPod(t, borough, ns, pod("a"))
	must(t, patchPod(t, ns, "a", `{"status":{"phase":"Succeeded"}}`, "status"))
	wantUsed(t, borough, ns, "q", "pods=0 count/pods=1 requests.cpu=0")
	createPod(t, borough, ns, pod("b"))
	wantDenied(t, patchPod(t, ns, "a", `{"status":{"phase":"Running"}}`, "status"), "a",
		"exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=1,requests.cpu=1, limited: pods=1,requests.cpu=1")
	must(t, patchPod(t, ns, "b", `{"status":{"phase":"Failed"}}`, "status"))
	wantUsed(t, borough, ns, "q", "pods=0 count/pods=2 requests.cpu=0")
	wantDenied(t, tryPod(t, borough, ns, pod("c")), "c", "exceeded quota: q, requested: count/pods=1, used: count/pods=2, limited: count/pods=2")
	deletePod(t, borough, ns, "b")
	wantUsed(t, borough, ns, "q", "pods=0 count/pods=1 requests.cpu=0")
}

// TestQuotaOfTerminatingPods checks that a Pod counts until it is removed.
func TestQuotaOfTerminatingPods(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "pods=1"))
	createPod(t, borough, ns, newPod("p", func(p *v1.Pod) { p.Spec.NodeName = "n" }))
	for _, grace := range []int64{30, 1} {
		must(t, borough.Client(t).TenancyV1().Pods(ns).Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
		wantUsed(t, borough, ns, "q", "pods=1")
		wantCode(t, tryPod(t, borough, ns, newPod("q")), 403)
	}
	must(t, borough.Client(t).TenancyV1().Pods(ns).Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	createPod(t, borough, ns, newPod("q"))
}

// TestQuotaOfTerminatingNamespace checks that a quota refuses nothing in a Terminating
// Namespace, in which Pods still shut down.
func TestQuotaOfTerminatingNamespace(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "requests.cpu=2"))
	createPod(t, borough, ns, newPod("on-node", func(p *v1.Pod) { p.Spec.NodeName = "n" }, withResources(quantities("cpu=1"), nil)))
	createPod(t, borough, ns, newPod("p", withResources(quantities("cpu=1"), nil)))
	client := borough.Client(t).TenancyV1()
	must(t, client.Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	poll.Eventually(t, func() string {
		if _, err := client.Pods(ns).Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Pod that does not run: %v", err)
		}
		return ""
	})
	_, err := client.ResourceQuotas(ns).Get(t.Context(), "q", metav1.GetOptions{})
	wantCode(t, err, 404)
	must(t, patchPod(t, ns, "on-node", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}}`, "resize"))
	deletePod(t, borough, ns, "on-node")
}

// TestQuotaOfFinalizers checks that a Pod that finalizers hold counts until the last one
// is removed.
func TestQuotaOfFinalizers(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "pods=1 count/pods=1 requests.cpu=1"))
	pod := func(name string) *v1.Pod { return newPod(name, withResources(quantities("cpu=1"), nil)) }
	held := pod("held")
	held.Finalizers = []string{"example.com/a", "example.com/b"}
	createPod(t, borough, ns, held)
	deletePod(t, borough, ns, "held")
	must(t, patchPod(t, ns, "held", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`))
	wantUsed(t, borough, ns, "q", "pods=1 count/pods=1 requests.cpu=1")
	wantCode(t, tryPod(t, borough, ns, pod("next")), 403)
	must(t, patchPod(t, ns, "held", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/b"]}}`))
	wantUsed(t, borough, ns, "q", "pods=0 count/pods=0 requests.cpu=0")
	createPod(t, borough, ns, pod("next"))
}

// TestQuotaOfBinding checks that a Pod counts once, bound or not, also if a quota is used
// up.
func TestQuotaOfBinding(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "pods=1 count/pods=1 requests.cpu=1"))
	createPod(t, borough, ns, newPod("p", withResources(quantities("cpu=1"), nil)))
	pods := borough.Client(t).TenancyV1().Pods(ns)
	bind := func(node string) error {
		binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
		_, err := pods.Bind(t.Context(), "p", binding, metav1.CreateOptions{})
		return err
	}
	must(t, bind("n1"))
	wantUsed(t, borough, ns, "q", "pods=1 count/pods=1 requests.cpu=1")
	wantCode(t, bind("n2"), 409)
	wantUsed(t, borough, ns, "q", "pods=1 count/pods=1 requests.cpu=1")
	must(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	wantUsed(t, borough, ns, "q", "pods=0 count/pods=0 requests.cpu=0")
}

// TestQuotaScopes checks which Pods the quotas with a scope count, and that a Pod that
// changes its scope needs the quota of the other.
func TestQuotaScopes(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	scope := func(scope corev1.ResourceQuotaScope) func(*corev1.ResourceQuotaSpec) {
		return func(spec *corev1.ResourceQuotaSpec) { spec.Scopes = []corev1.ResourceQuotaScope{scope} }
	}
	class := func(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuotaSpec) {
		return func(spec *corev1.ResourceQuotaSpec) {
			spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values}}}
		}
	}
	createQuota(t, borough, ns, newQuota("terminating", "pods=1", scope(corev1.ResourceQuotaScopeTerminating)))
	createQuota(t, borough, ns, newQuota("not-terminating", "pods=5", scope(corev1.ResourceQuotaScopeNotTerminating)))
	createQuota(t, borough, ns, newQuota("best-effort", "pods=5", scope(corev1.ResourceQuotaScopeBestEffort)))
	createQuota(t, borough, ns, newQuota("not-best-effort", "pods=5", scope(corev1.ResourceQuotaScopeNotBestEffort)))
	createQuota(t, borough, ns, newQuota("high", "pods=5", class(corev1.ScopeSelectorOpIn, "high")))
	createQuota(t, borough, ns, newQuota("cross", "pods=5", scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity)))
	createPod(t, borough, ns, newPod("a"))
	createPod(t, borough, ns, newPod("b", withResources(quantities("cpu=1"), nil)))
	createPod(t, borough, ns, newPod("c", func(p *v1.Pod) {
		p.Spec.PriorityClassName = "high"
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "zone", Namespaces: []string{"other"}}}}}
	}))
	want := func(used map[string]string) {
		t.Helper()
		for name, pods := range used {
			wantUsed(t, borough, ns, name, "pods="+pods)
		}
	}
	want(map[string]string{"terminating": "0", "not-terminating": "3", "best-effort": "2", "not-best-effort": "1", "high": "1", "cross": "1"})

	const deadline = `{"spec":{"activeDeadlineSeconds":60}}`
	must(t, patchPod(t, ns, "a", deadline))
	want(map[string]string{"terminating": "1", "not-terminating": "2", "best-effort": "2"})
	wantDenied(t, patchPod(t, ns, "b", deadline), "b", "exceeded quota: terminating, requested: pods=1, used: pods=1, limited: pods=1")
	want(map[string]string{"terminating": "1", "not-terminating": "2"})

	// Other scopes count other Pods.
	patch := []byte(`{"spec":{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"DoesNotExist"}]}}}`)
	_, err := borough.Client(t).TenancyV1().ResourceQuotas(ns).Patch(t.Context(), "high", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	want(map[string]string{"high": "2"})
	_, err = borough.Client(t).TenancyV1().ResourceQuotas(ns).Patch(t.Context(), "cross", types.MergePatchType, []byte(`{"spec":{"scopes":["BestEffort"]}}`), metav1.PatchOptions{})
	wantContains(t, wantCode(t, err, 422).Message, "spec.scopes", "field is immutable")
}

func TestQuotaOfResize(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "requests.cpu=1"))
	createPod(t, borough, ns, newPod("p", withResources(quantities("cpu=500m"), nil)))
	resize := func(cpu string) error {
		return patchPod(t, ns, "p", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"`+cpu+`"}}}]}}`, "resize")
	}
	must(t, resize("800m"))
	wantUsed(t, borough, ns, "q", "requests.cpu=800m")
	wantDenied(t, resize("2"), "p", "exceeded quota: q, requested: requests.cpu=1200m, used: requests.cpu=800m, limited: requests.cpu=1")
	must(t, resize("100m"))
	wantUsed(t, borough, ns, "q", "requests.cpu=100m")
}

// TestQuotaOfOtherCreates checks creates that are not a POST, and objects that are not
// Pods.
func TestQuotaOfOtherCreates(t *testing.T) {
	t.Parallel()
	path := func(ns, object string) string { return api + "/namespaces/" + ns + "/" + object }
	t.Run("apply", func(t *testing.T) {
		ns := newNamespace(t, borough)
		createQuota(t, borough, ns, newQuota("q", "pods=1"))
		apply := func(name string) error {
			_, err := borough.Client(t).TenancyV1().Pods(ns).Patch(t.Context(), name, types.ApplyPatchType, toJSON(t, newPod(name)), metav1.PatchOptions{FieldManager: "e2e"})
			return err
		}
		must(t, apply("a"))
		must(t, apply("a"))
		wantUsed(t, borough, ns, "q", "pods=1")
		wantDenied(t, apply("b"), "b", "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")
	})
	t.Run("PUT", func(t *testing.T) {
		ns := newNamespace(t, borough)
		createQuota(t, borough, ns, newQuota("q", "count/limitranges=1"))
		put := func(name string) (code int, message string) {
			limits := newLimitRange(name, item("Container", "max cpu=1"))
			limits.Kind, limits.APIVersion = "LimitRange", v1.SchemeGroupVersion.String()
			answer := borough.HTTP(t).Do(t, "PUT", path(ns, "limitranges/"+name), toJSON(t, limits))
			return answer.Code, answer.Status().Message
		}
		if code, message := put("a"); code != 201 {
			t.Fatalf("PUT of a new LimitRange: got %d %s", code, message)
		}
		code, message := put("b")
		wantEqual(t, "code", code, 403)
		wantEqual(t, "message", message, `limitranges.tenancy.borough.io "b" is forbidden: exceeded quota: q, requested: count/limitranges=1, used: count/limitranges=1, limited: count/limitranges=1`)
	})
	t.Run("quotas", func(t *testing.T) {
		ns := newNamespace(t, borough)
		createQuota(t, borough, ns, newQuota("a", "resourcequotas=2 count/resourcequotas=9"))
		wantUsed(t, borough, ns, "a", "resourcequotas=1 count/resourcequotas=1")
		createQuota(t, borough, ns, newQuota("b", "pods=1"))
		_, err := borough.Client(t).TenancyV1().ResourceQuotas(ns).Create(t.Context(), newQuota("c", "pods=1"), metav1.CreateOptions{})
		wantEqual(t, "message", wantCode(t, err, 403).Message,
			`resourcequotas.tenancy.borough.io "c" is forbidden: exceeded quota: a, requested: resourcequotas=1, used: resourcequotas=2, limited: resourcequotas=2`)
		borough.Kubectl(t, "delete", "quota", "b", "-n", ns)
		wantUsed(t, borough, ns, "a", "resourcequotas=1 count/resourcequotas=1")
	})
	t.Run("roles", func(t *testing.T) {
		ns := newNamespace(t, borough)
		createQuota(t, borough, ns, newQuota("q", "count/roles.rbac.authorization.k8s.io=1"))
		create := []string{"create", "role", "-n", ns, "--verb=get", "--resource=pods.tenancy.borough.io"}
		borough.Kubectl(t, append(create, "a")...)
		wantContains(t, borough.KubectlFails(t, append(create, "b")...),
			`roles.rbac.authorization.k8s.io "b" is forbidden: exceeded quota: q, requested: count/roles.rbac.authorization.k8s.io=1, used: count/roles.rbac.authorization.k8s.io=1, limited: count/roles.rbac.authorization.k8s.io=1`)
	})
	t.Run("leases", func(t *testing.T) {
		ns := newNamespace(t, borough)
		createQuota(t, borough, ns, newQuota("q", "count/leases.coordination.k8s.io=1"))
		leases := coreClient(t, borough, "").CoordinationV1().Leases(ns)
		create := func(name string) error {
			_, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}
		must(t, create("a"))
		wantEqual(t, "message", wantCode(t, create("b"), 403).Message,
			`leases.coordination.k8s.io "b" is forbidden: exceeded quota: q, requested: count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=1, limited: count/leases.coordination.k8s.io=1`)
		must(t, leases.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		must(t, create("b"))
	})
}
