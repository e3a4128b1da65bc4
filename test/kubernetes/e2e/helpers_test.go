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
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// These names distinguish our kinds from core's in kubectl.
const (
	namespaces  = "namespaces.tenancy.borough.io"
	limitRanges = "limitranges.tenancy.borough.io"
	pods        = "pods.tenancy.borough.io"
)

// waitTimeout is the flag of a kubectl that waits. It is less than the time after which the
// harness kills a kubectl.
const waitTimeout = "--timeout=240s"

// newNamespace creates a Namespace and returns its name.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Namespace: %v", err)
	}
	return ns.Name
}

// newClusterNamespace creates a namespace of the cluster.
func newClusterNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := cluster.Client(t).CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace of the cluster: %v", err)
	}
}

// newPod creates a valid Pod without resources, with the modifications.
func newPod(t *testing.T, namespace, name string, modify ...func(*v1.Pod)) *v1.Pod {
	t.Helper()
	pod := harness.NewPod(name)
	for _, m := range modify {
		m(pod)
	}
	pod, err := cluster.BoroughClient(t).TenancyV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Pod: %v", err)
	}
	return pod
}

// newLimitRange returns a LimitRange with one limit of the type.
func newLimitRange(limitType corev1.LimitType) *v1.LimitRange {
	return &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: limitType}}},
	}
}

// gone returns a condition: the Namespace is removed.
func gone(t *testing.T, name string) func() string { return goneFrom(t, cluster, name) }

// goneFrom is gone in a cluster that only this test uses.
func goneFrom(t *testing.T, cluster *testcluster.Cluster, name string) func() string {
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

// wantJSONPath fails the test unless the path of the object has the value.
func wantJSONPath(t testing.TB, kubectl *harness.Kubectl, object, path, want string) {
	t.Helper()
	if got := kubectl.Run(t, "get", object, "-o", "jsonpath="+path); got != want {
		t.Errorf("%s of %s: got %q, want %q", path, object, got, want)
	}
}

// newName returns a name that is not used yet.
func newName(prefix string) string { return prefix + "-" + rand.String(5) }
