// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestLimitRangerLargeQuantities checks that quantities that do not fit into an
// int64, and their sums, are compared by their exact value.
func TestLimitRangerLargeQuantities(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		limit   corev1.LimitRangeItem
		each    string // the limit of each of two containers
		message string // of the 403; empty if the Pod is allowed
	}{
		{"above max", item("Container", "max memory=1Gi"), "memory=100E", "maximum memory usage per Container is 1Gi, but limit is 100E"},
		{"sum above max", item("Pod", "max memory=2Gi"), "memory=8Ei", "maximum memory usage per Pod is 2Gi, but limit is 18446744073709551614"},
		{"below a large max", item("Container", "max memory=10E"), "memory=1Gi", ""},
		{"equal to a large max", item("Container", "max memory=10E"), "memory=10E", ""},
		{"sum above a large max", item("Pod", "max memory=100E"), "memory=51E", "maximum memory usage per Pod is 100E, but limit is 102E"},
		{"below a large min", item("Pod", "min memory=100E"), "memory=49E", "minimum memory usage per Pod is 100E, but request is 98E"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ns := limits(t, borough, newLimitRange("l", test.limit))
			pod := newPod("p", withResources(quantities(test.each), quantities(test.each)), func(pod *v1.Pod) {
				second := pod.Spec.Containers[0].DeepCopy()
				second.Name = "second"
				pod.Spec.Containers = append(pod.Spec.Containers, *second)
			})
			_, err := borough.Client(t).TenancyV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
			if test.message == "" {
				if err != nil {
					t.Errorf("got %v, want the Pod to be allowed", err)
				}
				return
			}
			wantEqual(t, "message", wantCode(t, err, 403).Message, `pods.tenancy.borough.io "p" is forbidden: `+test.message)
		})
	}
}

// TestContradictionsOfLargeLimitRanges creates two LimitRanges with many types
// that contradict each other in each type.
func TestContradictionsOfLargeLimitRanges(t *testing.T) {
	t.Parallel()
	const types = 1000
	var larger, smaller []corev1.LimitRangeItem
	for i := range types {
		limitType := corev1.LimitType(fmt.Sprintf("example.com/t%04d", i))
		larger = append(larger, item(limitType, "min cpu=2"))
		smaller = append(smaller, item(limitType, "max cpu=1"))
	}
	ns := limits(t, borough, newLimitRange("b", smaller...))
	lr := newLimitRange("a", larger...)
	lr.TypeMeta = metav1.TypeMeta{APIVersion: v1.SchemeGroupVersion.String(), Kind: "LimitRange"}
	answer := borough.HTTP(t).Do(t, "POST", api+"/namespaces/"+ns+"/limitranges?dryRun=All", toJSON(t, lr), "Content-Type", asJSON)
	warnings := wantAnswer(t, answer, 201).Header.Values("Warning")
	if len(warnings) == 0 || len(warnings) > 50 {
		t.Fatalf("got %d warnings, want some, and not all", len(warnings))
	}
	wantContains(t, warnings[0], `min cpu per example.com/t0000 is 2 in \"a\", but max cpu per example.com/t0000 is 1 in \"b\"`)
}

// TestLimitRangerCost checks that there is a bound on what LimitRanges with many
// values set in a Pod with many containers, compare it with, and report.
func TestLimitRangerCost(t *testing.T) {
	t.Parallel()
	many := func(field string, resources int) corev1.LimitRangeItem {
		for i := range resources {
			field += fmt.Sprintf(" example.com/r%03d=1", i)
		}
		return item("Container", field)
	}
	var violations []string
	for i := range 100 {
		violations = append(violations, fmt.Sprintf("example.com/r%03d max limit to request ratio per Container is 1, but no request is specified or request is 0", i))
	}
	for _, test := range []struct {
		name    string
		limit   corev1.LimitRangeItem
		message string // of the 403; empty if the Pod is allowed
	}{
		{"as many defaults as allowed", many("default", 5), ""},
		{"a thousand defaults", many("default", 1000), "the Pod has 1000 containers and the LimitRanges of its namespace have 2000 defaults for each: at most 10000 are set in a Pod"},
		{"many violations", many("ratio", 100), "[" + strings.Join(violations, ", ") + ", and 99900 more]"},
		{"a thousand bounds", many("ratio", 1000), "the Pod has 1000 containers and the LimitRanges of its namespace have 1000 bounds for each: at most 100000 are compared for a Pod"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := limits(t, borough, newLimitRange("l", test.limit))
			pod := newPod("p", func(pod *v1.Pod) {
				for i := range 999 {
					pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c-%d", i), Image: "i"})
				}
			})
			_, err := borough.Client(t).TenancyV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if test.message == "" {
				if err != nil {
					t.Errorf("got %v, want the Pod to be allowed", err)
				}
				return
			}
			wantEqual(t, "message", wantCode(t, err, 403).Message, `pods.tenancy.borough.io "p" is forbidden: `+test.message)
		})
	}
}
