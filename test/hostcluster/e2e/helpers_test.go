// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster"
)

// The kinds as kubectl needs them where core has kinds of the same names.
const (
	namespaces  = "namespaces.tenancy.borough.io"
	limitRanges = "limitranges.tenancy.borough.io"
	pods        = "pods.tenancy.borough.io"
)

// newNamespace creates a Namespace of ours and returns its name.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Namespace: %v", err)
	}
	return ns.Name
}

// newHostNamespace creates a namespace of the host.
func newHostNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := cluster.Client(t).CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace of the host: %v", err)
	}
}

// newPod creates a Pod that is valid and asks for no resources, changed as the
// modifiers say.
func newPod(t *testing.T, namespace, name string, modify ...func(*v1.Pod)) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/image:1"}}},
	}
	for _, m := range modify {
		m(pod)
	}
	pod, err := cluster.BoroughClient(t).TenancyV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Pod: %v", err)
	}
	return pod
}

// newLimitRange returns a LimitRange with one limit, of a type.
func newLimitRange(limitType corev1.LimitType) *v1.LimitRange {
	return &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: limitType}}},
	}
}

// gone is a condition: the Namespace of ours can't be got any more.
func gone(t *testing.T, name string) func() string { return goneFrom(t, cluster, name) }

// goneFrom is gone in a cluster of the test's own.
func goneFrom(t *testing.T, cluster *hostcluster.Cluster, name string) func() string {
	return harness.Gone(t, cluster.BoroughClient(t).TenancyV1().Namespaces(), name)
}

// wantContains fails the test unless text contains all parts.
func wantContains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got\n%s\nwithout %q", text, part)
		}
	}
}

// wantJSONPath fails the test unless the object's part is that text.
func wantJSONPath(t testing.TB, kubectl *hostcluster.Kubectl, object, path, want string) {
	t.Helper()
	if got := kubectl.Run(t, "get", object, "-o", "jsonpath="+path); got != want {
		t.Errorf("%s of %s: got %q, want %q", path, object, got, want)
	}
}

// newName returns a name that nothing has yet.
func newName(prefix string) string { return prefix + "-" + rand.String(5) }
