// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// api is the path of the API group and version.
const api = "/apis/tenancy.borough.io/v1"

const (
	asJSON  = "application/json"
	asYAML  = "application/yaml"
	asProto = "application/vnd.kubernetes.protobuf"
)

// ownNamespaces is what kubectl calls the Namespaces of our group.
const ownNamespaces = "namespaces.tenancy.borough.io"

// newNamespace creates a Namespace for one test and returns its name.
func newNamespace(t *testing.T, b *harness.Borough) string {
	t.Helper()
	namespaces := b.Client(t).TenancyV1().Namespaces()
	ns, err := namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Namespace: %v", err)
	}
	return ns.Name
}

// newPod returns a valid Pod without resources, changed by the modifiers.
func newPod(name string, modify ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "tenancy.borough.io/v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/image:1"}}},
	}
	for _, m := range modify {
		m(pod)
	}
	return pod
}

// withResources sets the requests and limits of the first container.
func withResources(requests, limits corev1.ResourceList) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
}

// quantities parses a list such as "cpu=1 memory=1Gi".
func quantities(list string) corev1.ResourceList {
	if list == "" {
		return nil
	}
	resources := corev1.ResourceList{}
	for _, entry := range strings.Fields(list) {
		name, value, _ := strings.Cut(entry, "=")
		resources[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return resources
}

func createPod(t *testing.T, b *harness.Borough, ns string, pod *v1.Pod) *v1.Pod {
	t.Helper()
	created, err := b.Client(t).TenancyV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create Pod %s: %v", pod.Name, err)
	}
	return created
}

func newLimitRange(name string, limits ...corev1.LimitRangeItem) *v1.LimitRange {
	return &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.LimitRangeSpec{Limits: limits}}
}

func createLimitRange(t *testing.T, b *harness.Borough, ns string, lr *v1.LimitRange) *v1.LimitRange {
	t.Helper()
	created, err := b.Client(t).TenancyV1().LimitRanges(ns).Create(t.Context(), lr, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create LimitRange %s: %v", lr.Name, err)
	}
	return created
}

// wantCode returns the Status of err. It fails the test unless err is an API
// error with that code.
func wantCode(t testing.TB, err error, code int32) metav1.Status {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Fatalf("got %v, want an API error with code %d", err, code)
	}
	if status.Status().Code != code {
		t.Fatalf("got code %d (%v), want %d", status.Status().Code, err, code)
	}
	return status.Status()
}

// wantStatus fails the test unless the response is a Status with that code and a
// message that contains the text.
func wantStatus(t testing.TB, answer harness.Answer, code int, text string) {
	t.Helper()
	status := answer.Status()
	if answer.Code != code || status.Kind != "Status" || int(status.Code) != code || !strings.Contains(status.Message, text) {
		t.Errorf("got %v, want a Status with code %d and %q", answer, code, text)
	}
}

// wantAnswer returns the response. It fails the test unless the response has
// that code.
func wantAnswer(t testing.TB, answer harness.Answer, code int) harness.Answer {
	t.Helper()
	if answer.Code != code {
		t.Fatalf("got %v, want code %d", answer, code)
	}
	return answer
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

// wantEqual fails the test unless got and want are equal. It compares quantities
// by value.
func wantEqual(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func toJSON(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode %T: %v", value, err)
	}
	return data
}

// gone returns a condition for Eventually: the Namespace does not exist.
func gone(t *testing.T, b *harness.Borough, name string) func() string {
	return harness.Gone(t, b.Client(t).TenancyV1().Namespaces(), name)
}
