// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

// TestQuotaDryRun checks that a dry run is compared with the quotas, and charges
// nothing.
func TestQuotaDryRun(t *testing.T) {
	t.Parallel()
	client := borough.Client(t).TenancyV1()
	namespace := newNamespace(t, borough)
	createQuota(t, borough, namespace, newQuota("q", "requests.cpu=1"))
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := client.Pods(namespace).Create(t.Context(), quotaPod("small", "1", ""), dryRun); err != nil {
		t.Error(err)
	}
	_, err := client.Pods(namespace).Create(t.Context(), quotaPod("large", "1001m", ""), dryRun)
	want := `pods.tenancy.borough.io "large" is forbidden: exceeded quota: q, requested: requests.cpu=1001m, used: requests.cpu=0, limited: requests.cpu=1`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	got, err := client.ResourceQuotas(namespace).Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil || !got.Status.Used.Name("requests.cpu", resource.DecimalSI).IsZero() {
		t.Errorf("got the usage %v, error %v", got.Status.Used, err)
	}
}

// TestQuotaOfStatus reports that a node has allocated more than a Pod requests, and than its quota
// allows: it is charged, and not denied.
func TestQuotaOfStatus(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, borough)
	createQuota(t, borough, namespace, newQuota("q", "requests.cpu=1"))
	pods := borough.Client(t).TenancyV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), quotaPod("p", "1", ""), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, AllocatedResources: quantities("cpu=2")}}
	for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
		if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{DryRun: dryRun}); err != nil {
			t.Errorf("dry run %v: %v", dryRun, err)
		}
	}
	wantUsed(t, borough, namespace, "q", "requests.cpu=2")
}

// TestQuotaHolders checks that a denial names the Pods that are being deleted and hold
// what is missing.
func TestQuotaHolders(t *testing.T) {
	t.Parallel()
	client := borough.Client(t).TenancyV1()
	namespace := newNamespace(t, borough)
	createQuota(t, borough, namespace, newQuota("q", "pods=5 requests.cpu=1"))
	for _, name := range []string{"web", "other"} {
		if _, err := client.Pods(namespace).Create(t.Context(), quotaPod(name, "400m", "node"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create := func() string {
		_, err := client.Pods(namespace).Create(t.Context(), quotaPod("new", "300m", ""), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Fatalf("got %v, want Forbidden", err)
		}
		return err.Error()
	}
	if text := create(); strings.Contains(text, "Terminating") {
		t.Errorf("got %s, though no Pod is being deleted", text)
	}
	if err := client.Pods(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitDenial(t, create, `exceeded quota: q, requested: requests.cpu=300m, used: requests.cpu=800m, limited: requests.cpu=1, of which `+holder("web", "400m")+`$`)
	// The server has not looked at all Pods of the Namespace for this.
	const lists = `apiserver_cache_list_total{group="tenancy.borough.io",index="f:beingDeletedIn",resource="pods"}`
	if metrics := wantAnswer(t, borough.HTTP(t).Do(t, http.MethodGet, "/metrics", nil), 200).Body; !bytes.Contains(metrics, []byte(lists)) {
		t.Errorf("there is no metric %s", lists)
	}
}

// TestSeveralQuotaHolders checks that of several holders a denial names the three whose
// grace period ends first.
func TestSeveralQuotaHolders(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", "requests.cpu=1"))
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		createPod(t, borough, ns, quotaPod(name, "200m", "node"))
		grace := int64(500 - 100*i)
		must(t, borough.Client(t).TenancyV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	}
	create := func() string { return wantCode(t, tryPod(t, borough, ns, quotaPod("new", "1", "")), 403).Message }
	awaitDenial(t, create, `, of which `+holder("e", "200m")+`, `+holder("d", "200m")+`, `+holder("c", "200m")+`, and 2 more Pods that are being deleted$`)
}

// TestManyQuotaHolders checks that a denial does not look at all Pods that are being deleted,
// of which there can be any number, but only at the first 100.
func TestManyQuotaHolders(t *testing.T) {
	t.Parallel()
	const n = 102
	ns := newNamespace(t, borough)
	createQuota(t, borough, ns, newQuota("q", fmt.Sprintf("pods=%d", n)))
	for i := range n {
		name := fmt.Sprintf("p%03d", i)
		createPod(t, borough, ns, quotaPod(name, "1m", "node"))
		grace := int64(60 * (2*n - i)) // the last ends first, however long the deletes take
		must(t, borough.Client(t).TenancyV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	}
	create := func() string { return wantCode(t, tryPod(t, borough, ns, quotaPod("new", "1m", "")), 403).Message }
	awaitDenial(t, create, `, of which pods/p099 .*, pods/p098 .*, pods/p097 \(Terminating for \d+m?s\) holds pods=1, and perhaps more Pods that are being deleted$`)
}

// holder returns a pattern of how a denial names a Pod.
func holder(pod, cpu string) string {
	return `pods/` + pod + ` \(Terminating for \d+m?s\) holds requests.cpu=` + cpu
}

// awaitDenial waits until the message of a denied create matches a pattern. The holders in
// it are from the watch cache, which follows the write.
func awaitDenial(t *testing.T, create func() string, pattern string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	poll.Eventually(t, func() string {
		if text := create(); !want.MatchString(text) {
			return text
		}
		return ""
	})
}

// quotaPod returns a Pod that requests CPU.
func quotaPod(name, cpu, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName: node,
		Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}},
	}}
}
