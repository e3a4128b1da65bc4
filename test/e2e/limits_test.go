// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

const annotation = "kubernetes.io/limit-ranger"

// item returns a LimitRangeItem from parts such as "min cpu=1".
func item(of corev1.LimitType, parts ...string) corev1.LimitRangeItem {
	limit := corev1.LimitRangeItem{Type: of}
	for _, part := range parts {
		kind, list, _ := strings.Cut(part, " ")
		switch kind {
		case "min":
			limit.Min = quantities(list)
		case "max":
			limit.Max = quantities(list)
		case "default":
			limit.Default = quantities(list)
		case "defaultRequest":
			limit.DefaultRequest = quantities(list)
		case "ratio":
			limit.MaxLimitRequestRatio = quantities(list)
		default:
			panic("no such part of a LimitRangeItem: " + kind)
		}
	}
	return limit
}

func TestLimitRangeDefaulting(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for _, test := range []struct {
		name       string
		sent, want corev1.LimitRangeItem
	}{
		{
			"default from max, request from default",
			item("Container", "max cpu=2"),
			item("Container", "max cpu=2", "default cpu=2", "defaultRequest cpu=2"),
		},
		{
			"request from min",
			item("Container", "min cpu=1"),
			item("Container", "min cpu=1", "defaultRequest cpu=1"),
		},
		{
			"what is given stays",
			item("Container", "min cpu=1", "max cpu=4", "default cpu=3", "defaultRequest cpu=2"),
			item("Container", "min cpu=1", "max cpu=4", "default cpu=3", "defaultRequest cpu=2"),
		},
		{
			"rounded up to milli",
			item("Container", "max cpu=1500u"),
			item("Container", "max cpu=2m", "default cpu=2m", "defaultRequest cpu=2m"),
		},
		{
			"nothing for a Pod",
			item("Pod", "max cpu=2"),
			item("Pod", "max cpu=2"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			lr := newLimitRange("", test.sent)
			lr.GenerateName = "defaulting-"
			got := createLimitRange(t, borough, ns, lr)
			for _, list := range []*corev1.ResourceList{&got.Spec.Limits[0].Default, &got.Spec.Limits[0].DefaultRequest} {
				if len(*list) == 0 {
					*list = nil // empty or absent depends on the encoding
				}
			}
			wantEqual(t, "limits", got.Spec.Limits, []corev1.LimitRangeItem{test.want})
		})
	}
}

func TestLimitRangeValidation(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for _, test := range []struct {
		name    string
		limits  []corev1.LimitRangeItem
		message string
	}{
		{"unknown type", []corev1.LimitRangeItem{item("Foo", "max cpu=1")}, `spec.limits[0].type: Invalid value: "Foo": must be a standard limit type or fully qualified`},
		{"type twice", []corev1.LimitRangeItem{item("Pod", "max cpu=1"), item("Pod", "max memory=1Gi")}, `spec.limits[1].type: Duplicate value: "Pod"`},
		{"default for a Pod", []corev1.LimitRangeItem{item("Pod", "max cpu=1", "default cpu=1")}, "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"},
		{"request for a Pod", []corev1.LimitRangeItem{item("Pod", "max cpu=1", "defaultRequest cpu=1")}, "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"},
		{"claim without storage", []corev1.LimitRangeItem{item("PersistentVolumeClaim")}, "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided"},
		{"min above max", []corev1.LimitRangeItem{item("Container", "min cpu=2", "max cpu=1")}, `min value 2 is greater than max value 1`},
		{"default above max", []corev1.LimitRangeItem{item("Container", "max cpu=1", "default cpu=2")}, `spec.limits[0].default[cpu]: Invalid value: "1": default value 2 is greater than max value 1`},
		{"request above default", []corev1.LimitRangeItem{item("Container", "default cpu=1", "defaultRequest cpu=2")}, `spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1`},
		{"min above default", []corev1.LimitRangeItem{item("Container", "min cpu=3", "default cpu=2", "defaultRequest cpu=3")}, "min value 3 is greater than default value 2"},
		{"ratio below one", []corev1.LimitRangeItem{item("Container", "ratio cpu=500m")}, "ratio 500m is less than 1"},
		{"ratio above what min and max allow", []corev1.LimitRangeItem{item("Container", "min cpu=1", "max cpu=2", "ratio cpu=3")}, "ratio 3 is greater than max/min = 2.000000"},
		{"unknown resource", []corev1.LimitRangeItem{item("Container", "max foo=1")}, "must be a standard resource type or fully qualified"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := borough.Client(t).TenancyV1().LimitRanges(ns).Create(t.Context(), newLimitRange("bad", test.limits...), metav1.CreateOptions{})
			wantContains(t, wantCode(t, err, 422).Message, test.message)
		})
	}
}

// limits creates a Namespace with LimitRanges, which are in force at once.
func limits(t *testing.T, b *harness.Borough, lrs ...*v1.LimitRange) (ns string) {
	t.Helper()
	ns = newNamespace(t, b)
	for _, lr := range lrs {
		createLimitRange(t, b, ns, lr)
	}
	return ns
}

func TestLimitRangerDefaults(t *testing.T) {
	t.Parallel()
	ns := limits(t, borough, newLimitRange("l", item("Container", "default cpu=2 memory=2Gi", "defaultRequest cpu=1")))
	for _, test := range []struct {
		name             string
		requests, limits string
		want             corev1.ResourceRequirements
		annotation       string
	}{
		{
			"nothing given", "", "",
			corev1.ResourceRequirements{Requests: quantities("cpu=1 memory=2Gi"), Limits: quantities("cpu=2 memory=2Gi")},
			"LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c",
		},
		{
			"limits given: decoding sets the requests", "", "cpu=3 memory=1Gi",
			corev1.ResourceRequirements{Requests: quantities("cpu=3 memory=1Gi"), Limits: quantities("cpu=3 memory=1Gi")},
			"",
		},
		{
			"request given", "cpu=1500m", "",
			corev1.ResourceRequirements{Requests: quantities("cpu=1500m memory=2Gi"), Limits: quantities("cpu=2 memory=2Gi")},
			"LimitRanger plugin set: memory request for container c; cpu, memory limit for container c",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := newPod("", withResources(quantities(test.requests), quantities(test.limits)))
			pod.GenerateName = "p-"
			got := createPod(t, borough, ns, pod)
			wantEqual(t, "resources", got.Spec.Containers[0].Resources, test.want)
			wantEqual(t, "annotation", got.Annotations[annotation], test.annotation)
		})
	}

	t.Run("init containers", func(t *testing.T) {
		got := createPod(t, borough, ns, newPod("init", func(pod *v1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "example.com/image:1", Resources: corev1.ResourceRequirements{Limits: quantities("memory=1Gi")}}}
		}))
		wantEqual(t, "annotation", got.Annotations[annotation],
			"LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; cpu request for init container i; cpu limit for init container i")
	})
	t.Run("a request above the default limit is invalid", func(t *testing.T) {
		_, err := borough.Client(t).TenancyV1().Pods(ns).Create(t.Context(), newPod("invalid", withResources(quantities("cpu=3"), nil)), metav1.CreateOptions{})
		wantContains(t, wantCode(t, err, 422).Message, "spec.containers[0].resources.requests", "must be less than or equal to cpu limit of 2")
	})
}

func TestLimitRangerViolations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name             string
		limit            corev1.LimitRangeItem
		requests, limits string
		message          string // of the 403; empty if the Pod is allowed
	}{
		{"allowed", item("Container", "min cpu=1", "max cpu=2"), "cpu=1", "cpu=2", ""},
		{"request below min", item("Container", "min cpu=1"), "cpu=500m", "cpu=2", "minimum cpu usage per Container is 1, but request is 500m"},
		{"request and limit below min", item("Container", "min cpu=1"), "cpu=500m", "cpu=700m", "minimum cpu usage per Container is 1, but request is 500m"},
		{"limit above max", item("Container", "max cpu=1"), "cpu=1", "cpu=2", "maximum cpu usage per Container is 1, but limit is 2"},
		{"request and limit above max", item("Container", "max cpu=1"), "cpu=2", "cpu=2", "maximum cpu usage per Container is 1, but limit is 2"},
		{"ratio", item("Container", "ratio cpu=2"), "cpu=1", "cpu=3", "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
		{"ratio without limit", item("Container", "ratio cpu=2"), "cpu=1", "", "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"},
		{"ratio without request", item("Container", "ratio cpu=2"), "", "", "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"},
		{"Pod without request", item("Pod", "min cpu=1"), "", "", "minimum cpu usage per Pod is 1.  No request is specified"},
		{"Pod without limit", item("Pod", "max cpu=1"), "", "", "maximum cpu usage per Pod is 1.  No limit is specified"},
		{"Pod above max", item("Pod", "max memory=1Gi"), "memory=2Gi", "memory=2Gi", "maximum memory usage per Pod is 1Gi, but limit is 2Gi"},
		{"several at once", item("Container", "max cpu=1 memory=1Gi"), "", "cpu=2 memory=2Gi", "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ns := limits(t, borough, newLimitRange("l", test.limit))
			pods := borough.Client(t).TenancyV1().Pods(ns)
			_, err := pods.Create(t.Context(), newPod("p", withResources(quantities(test.requests), quantities(test.limits))), metav1.CreateOptions{})
			if test.message == "" {
				if err != nil {
					t.Errorf("got %v, want the Pod to be allowed", err)
				}
				return
			}
			status := wantCode(t, err, 403)
			wantEqual(t, "message", status.Message, `pods.tenancy.borough.io "p" is forbidden: `+test.message)
		})
	}
}

// TestSeveralLimitRanges checks that LimitRanges apply in the order of their
// names, not of their creation.
func TestSeveralLimitRanges(t *testing.T) {
	t.Parallel()
	a := newLimitRange("a", item("Container", "default cpu=1", "max cpu=2"))
	b := newLimitRange("b", item("Container", "default cpu=500m memory=1Gi", "max cpu=1500m memory=2Gi"))
	for _, order := range [][]*v1.LimitRange{{a, b}, {b, a}} {
		t.Run(order[0].Name+" first", func(t *testing.T) {
			ns := limits(t, borough, order...)
			pods := borough.Client(t).TenancyV1().Pods(ns)

			got, err := pods.Create(t.Context(), newPod("p"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "limits", got.Spec.Containers[0].Resources.Limits, quantities("cpu=1 memory=1Gi"))

			_, err = pods.Create(t.Context(), newPod("q", withResources(nil, quantities("cpu=3 memory=3Gi"))), metav1.CreateOptions{})
			message := wantCode(t, err, 403).Message
			wantContains(t, message,
				`LimitRange "a": maximum cpu usage per Container is 2, but limit is 3`,
				`LimitRange "b": maximum cpu usage per Container is 1500m, but limit is 3`,
				`LimitRange "b": maximum memory usage per Container is 2Gi, but limit is 3Gi`)
		})
	}
}

// TestLimitRangerOnUpdate checks that LimitRanger does not change or reject
// updates of existing Pods.
func TestLimitRangerOnUpdate(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	pod := createPod(t, borough, ns, newPod("p", withResources(quantities("cpu=2"), quantities("cpu=2"))))
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1")))
	_, err := pods.Create(t.Context(), newPod("q", withResources(nil, quantities("cpu=2"))), metav1.CreateOptions{})
	wantCode(t, err, 403)
	pod.Labels = map[string]string{"a": "b"}
	pod, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("update a Pod that violates a LimitRange: %v", err)
	}
	pod.Spec.Containers[0].Resources.Limits = quantities("cpu=3")
	pod.Spec.Containers[0].Resources.Requests = quantities("cpu=3")
	_, err = pods.UpdateResize(t.Context(), pod.Name, pod, metav1.UpdateOptions{})
	wantContains(t, wantCode(t, err, 403).Message, "maximum cpu usage per Container is 1, but")
}
