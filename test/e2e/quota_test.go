// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// newQuota returns a ResourceQuota with limits such as "pods=1 requests.cpu=2".
func newQuota(name, hard string, modify ...func(*corev1.ResourceQuotaSpec)) *v1.ResourceQuota {
	quota := &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: quantities(hard)}}
	for _, m := range modify {
		m(&quota.Spec)
	}
	return quota
}

func createQuota(t *testing.T, b *harness.Borough, ns string, quota *v1.ResourceQuota) {
	t.Helper()
	if _, err := b.Client(t).TenancyV1().ResourceQuotas(ns).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create ResourceQuota %s: %v", quota.Name, err)
	}
}

// setHard replaces the limits of a quota.
func setHard(t *testing.T, b *harness.Borough, ns, name, hard string) {
	t.Helper()
	patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/hard", "value": %s}]`, toJSON(t, quantities(hard)))
	if _, err := b.Client(t).TenancyV1().ResourceQuotas(ns).Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatalf("change ResourceQuota %s: %v", name, err)
	}
}

// wantUsed fails the test unless the usage of a quota is a list such as "pods=1".
func wantUsed(t *testing.T, b *harness.Borough, ns, name, used string) {
	t.Helper()
	quota, err := b.Client(t).TenancyV1().ResourceQuotas(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "usage of "+name, quota.Status.Used, quantities(used))
	wantEqual(t, "limits of "+name, quota.Status.Hard, quota.Spec.Hard)
}

// tryPod creates a Pod, and returns the error.
func tryPod(t *testing.T, b *harness.Borough, ns string, pod *v1.Pod) error {
	t.Helper()
	_, err := b.Client(t).TenancyV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	return err
}

// wantDenied fails the test unless err is a denial of a write of a Pod with that text.
func wantDenied(t *testing.T, err error, pod, text string) {
	t.Helper()
	status := wantCode(t, err, 403)
	wantEqual(t, "message", status.Message, fmt.Sprintf("pods.tenancy.borough.io %q is forbidden: %s", pod, text))
	wantEqual(t, "reason", status.Reason, metav1.StatusReasonForbidden)
}

func deletePod(t *testing.T, b *harness.Borough, ns, name string) {
	t.Helper()
	if err := b.Client(t).TenancyV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete Pod %s: %v", name, err)
	}
}

func TestQuotaDenials(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name             string
		hard             string
		requests, limits string // of the second Pod; the first has 400m and 1Gi of both
		text             string
	}{
		{"number of Pods", "pods=1", "", "", "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"},
		{"number of objects", "count/pods=1", "", "", "exceeded quota: q, requested: count/pods=1, used: count/pods=1, limited: count/pods=1"},
		{"requests", "requests.cpu=1", "cpu=700m", "", "exceeded quota: q, requested: requests.cpu=700m, used: requests.cpu=400m, limited: requests.cpu=1"},
		{"limits", "limits.memory=1Gi", "", "memory=1Mi", "exceeded quota: q, requested: limits.memory=1Mi, used: limits.memory=1Gi, limited: limits.memory=1Gi"},
		{"an extended resource", "requests.example.com/gpu=1", "example.com/gpu=2", "example.com/gpu=2",
			"exceeded quota: q, requested: requests.example.com/gpu=2, used: requests.example.com/gpu=0, limited: requests.example.com/gpu=1"},
		{"only what is exceeded is named", "pods=1 requests.cpu=5", "cpu=1", "", "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"},
		{"a request is missing", "requests.cpu=5 pods=5", "", "", "failed quota: q: must specify requests.cpu for: c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := newNamespace(t, borough)
			createQuota(t, borough, ns, newQuota("q", test.hard))
			createPod(t, borough, ns, newPod("first", withResources(quantities("cpu=400m memory=1Gi"), quantities("cpu=400m memory=1Gi"))))
			wantDenied(t, tryPod(t, borough, ns, newPod("second", withResources(quantities(test.requests), quantities(test.limits)))), "second", test.text)
		})
	}
}

// TestQuotaFreed checks that what a delete frees can be used by the next request, and
// that a create that fails uses nothing.
func TestQuotaFreed(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "pods=2 count/pods=2"))
	createPod(t, borough, ns, newPod("a"))
	for range 20 {
		wantCode(t, tryPod(t, borough, ns, newPod("a")), 409)
		wantCode(t, tryPod(t, borough, ns, newPod("invalid", func(p *v1.Pod) { p.Spec.Containers = nil })), 422)
	}
	wantUsed(t, borough, ns, "q", "pods=1 count/pods=1")
	createPod(t, borough, ns, newPod("b"))
	wantCode(t, tryPod(t, borough, ns, newPod("a")), 409) // although the quota is used up
	for range 20 {
		wantCode(t, tryPod(t, borough, ns, newPod("c")), 403)
		deletePod(t, borough, ns, "b")
		createPod(t, borough, ns, newPod("b"))
	}
	wantUsed(t, borough, ns, "q", "pods=2 count/pods=2")
	if err := borough.Client(t).TenancyV1().Pods(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	wantUsed(t, borough, ns, "q", "pods=0 count/pods=0")
	createPod(t, borough, ns, newPod("a"))
	createPod(t, borough, ns, newPod("b"))
	wantCode(t, tryPod(t, borough, ns, newPod("c")), 403)
}

// TestQuotaOfExistingPods checks that a new quota counts what exists, and what changes
// when its limits do.
func TestQuotaOfExistingPods(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	resources := withResources(quantities("cpu=100m memory=1Gi"), nil)
	for i := range 3 {
		createPod(t, borough, ns, newPod(fmt.Sprint("p", i), resources))
	}
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1")))
	createQuota(t, borough, ns, newQuota("q", "pods=4 requests.cpu=1 count/limitranges=5 services=5"))
	wantUsed(t, borough, ns, "q", "pods=3 requests.cpu=300m count/limitranges=1 services=0")

	// Lowering a limit below the usage changes no Pod, and blocks only growth.
	setHard(t, borough, ns, "q", "pods=1")
	wantUsed(t, borough, ns, "q", "pods=3")
	wantDenied(t, tryPod(t, borough, ns, newPod("new", resources)), "new", "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=1")
	borough.Kubectl(t, "label", "pod", "p0", "-n", ns, "a=b")
	deletePod(t, borough, ns, "p0")
	wantDenied(t, tryPod(t, borough, ns, newPod("new", resources)), "new", "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=1")
	setHard(t, borough, ns, "q", "pods=3")
	createPod(t, borough, ns, newPod("new", resources))

	// A resource that was not limited is counted.
	setHard(t, borough, ns, "q", "pods=3 memory=3Gi")
	wantUsed(t, borough, ns, "q", "pods=3 memory=3Gi")
	setHard(t, borough, ns, "q", "memory=3Gi")
	wantUsed(t, borough, ns, "q", "memory=3Gi")
	wantDenied(t, tryPod(t, borough, ns, newPod("p4", resources)), "p4", "exceeded quota: q, requested: memory=1Gi, used: memory=3Gi, limited: memory=3Gi")

	borough.Kubectl(t, "delete", "quota", "q", "-n", ns)
	createPod(t, borough, ns, newPod("p4", resources))
}

// TestSeveralQuotas checks that a write has to be allowed by all quotas, of which the
// denial names the first, and that it charges none of them otherwise.
func TestSeveralQuotas(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("b", "pods=1"))
	createQuota(t, borough, ns, newQuota("a", "count/pods=1"))
	createQuota(t, borough, ns, newQuota("c", "pods=5"))
	createPod(t, borough, ns, newPod("p"))
	wantDenied(t, tryPod(t, borough, ns, newPod("q")), "q", "exceeded quota: a, requested: count/pods=1, used: count/pods=1, limited: count/pods=1")
	setHard(t, borough, ns, "a", "count/pods=5")
	wantDenied(t, tryPod(t, borough, ns, newPod("q")), "q", "exceeded quota: b, requested: pods=1, used: pods=1, limited: pods=1")
	wantUsed(t, borough, ns, "a", "count/pods=1")
	wantUsed(t, borough, ns, "c", "pods=1")
}

// TestQuotaStatus checks that clients cannot write the status.
func TestQuotaStatus(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("p"))
	quota := newQuota("q", "pods=2")
	quota.Status = corev1.ResourceQuotaStatus{Hard: quantities("pods=9"), Used: quantities("pods=0")}
	createQuota(t, borough, ns, quota)
	wantUsed(t, borough, ns, "q", "pods=1")
	path := api + "/namespaces/" + ns + "/resourcequotas/q"
	status := []byte(`{"apiVersion":"tenancy.borough.io/v1","kind":"ResourceQuota","status":{"hard":{"pods":"9"},"used":{"pods":"0"}}}`)
	for _, patch := range []string{"application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"} {
		wantAnswer(t, borough.HTTP(t).Do(t, "PATCH", path+"?fieldManager=e2e", status, "Content-Type", patch), 200)
		wantAnswer(t, borough.HTTP(t).Do(t, "PATCH", path+"/status?fieldManager=e2e", status, "Content-Type", patch), 404)
		wantUsed(t, borough, ns, "q", "pods=1")
	}
}

func TestQuotaBounds(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	quotas := borough.Client(t).TenancyV1().ResourceQuotas(ns)
	for _, test := range []struct {
		name, field string
		change      func(*corev1.ResourceQuotaSpec)
	}{
		{"resources", "spec.hard", func(spec *corev1.ResourceQuotaSpec) {
			for i := range 201 {
				spec.Hard[corev1.ResourceName(fmt.Sprintf("count/things%d.example.com", i))] = resource.MustParse("1")
			}
		}},
		{"scopes", "spec.scopes", func(spec *corev1.ResourceQuotaSpec) {
			spec.Scopes = slices.Repeat([]corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}, 51)
		}},
		{"expressions", "spec.scopeSelector.matchExpressions", func(spec *corev1.ResourceQuotaSpec) {
			exists := corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpExists}
			spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: slices.Repeat([]corev1.ScopedResourceSelectorRequirement{exists}, 51)}
		}},
		{"values", "spec.scopeSelector.matchExpressions.values", func(spec *corev1.ResourceQuotaSpec) {
			spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: slices.Repeat([]string{"high"}, 201)}}}
		}},
	} {
		_, err := quotas.Create(t.Context(), newQuota("q", "pods=1", test.change), metav1.CreateOptions{})
		wantContains(t, wantCode(t, err, 422).Message, test.field+": Too many")
	}
	for i := range 50 {
		createQuota(t, borough, ns, newQuota(fmt.Sprintf("q%02d", i), "pods=1"))
	}
	_, err := quotas.Create(t.Context(), newQuota("one-more", "pods=1"), metav1.CreateOptions{})
	wantEqual(t, "message", wantCode(t, err, 403).Message,
		`resourcequotas.tenancy.borough.io "one-more" is forbidden: the namespace has 50 resource quotas, the maximum`)
	createPod(t, borough, ns, newPod("p")) // charges all of them
	wantUsed(t, borough, ns, "q00", "pods=1")
	wantUsed(t, borough, ns, "q49", "pods=1")
}

// TestQuotaWithLimitRange checks that the defaults of LimitRanges count.
func TestQuotaWithLimitRange(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "requests.cpu=1 limits.cpu=4"))
	wantDenied(t, tryPod(t, borough, ns, newPod("p")), "p", "failed quota: q: must specify limits.cpu for: c; requests.cpu for: c")
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "default cpu=2", "defaultRequest cpu=500m")))
	createPod(t, borough, ns, newPod("p"))
	wantUsed(t, borough, ns, "q", "requests.cpu=500m limits.cpu=2")
}
