// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// list makes a ResourceList of pairs of name and quantity.
func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestLimitRangeDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)

	for name, test := range map[string]struct{ in, want corev1.LimitRangeItem }{
		"default from max, and defaultRequest from it": {
			in: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "2")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "2"),
				Default: list("cpu", "2"), DefaultRequest: list("cpu", "2")},
		},
		"defaultRequest from min only without a default": {
			in: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: list("cpu", "1", "memory", "1Mi"), Default: list("cpu", "3")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: list("cpu", "1", "memory", "1Mi"),
				Default: list("cpu", "3"), DefaultRequest: list("cpu", "3", "memory", "1Mi")},
		},
		"what is given stays": {
			in: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "9"), Min: list("cpu", "1"),
				Default: list("cpu", "5"), DefaultRequest: list("cpu", "4")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "9"), Min: list("cpu", "1"),
				Default: list("cpu", "5"), DefaultRequest: list("cpu", "4")},
		},
		"each resource by itself": {
			in: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "2", "memory", "1Gi"), Default: list("cpu", "1")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "2", "memory", "1Gi"),
				Default: list("cpu", "1", "memory", "1Gi"), DefaultRequest: list("cpu", "1", "memory", "1Gi")},
		},
		"none for pods": {
			in:   corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "2"), Min: list("cpu", "1")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "2"), Min: list("cpu", "1")},
		},
		"none for claims": {
			in:   corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("storage", "2Gi")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("storage", "2Gi")},
		},
		"rounded up to milli, in every list": {
			in: corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "1500u"), Min: list("cpu", "1n"),
				MaxLimitRequestRatio: list("cpu", "1.0001")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "2m"), Min: list("cpu", "1m"),
				MaxLimitRequestRatio: list("cpu", "1001m")},
		},
		"defaults are rounded as well": {
			in: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "2999u")},
			want: corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "3m"),
				Default: list("cpu", "3m"), DefaultRequest: list("cpu", "3m")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &v1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{test.in}}}
			for range 2 { // the second time shows that nothing more changes
				scheme.Default(obj)
				if diff := cmp.Diff(test.want, obj.Spec.Limits[0]); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
		})
	}
}

func TestResourceListsOfPodsAreRounded(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	huge := "123456789012345678901234567890.1234567" // more than an int64 holds

	pod := &v1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{
			Limits: list("cpu", "100500u", "memory", "1Gi", "example.com/huge", huge),
		},
	}}}}
	scheme.Default(pod)

	want := list("cpu", "101m", "memory", "1Gi", "example.com/huge", "123456789012345678901234567890.124")
	if diff := cmp.Diff(want, pod.Spec.Containers[0].Resources.Limits); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
