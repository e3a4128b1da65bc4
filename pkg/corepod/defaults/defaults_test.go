// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/borough-io/borough/pkg/corepod/defaults"
)

func TestPodStatusDefaults(t *testing.T) {
	list := func(ips ...string) (list []corev1.PodIP) {
		for _, ip := range ips {
			list = append(list, corev1.PodIP{IP: ip})
		}
		return list
	}
	for _, tc := range []struct {
		name      string
		set, want corev1.PodStatus
	}{
		{"none", corev1.PodStatus{}, corev1.PodStatus{}},
		{"list only", corev1.PodStatus{PodIPs: list("1.1.1.1", "::1")}, corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: list("1.1.1.1", "::1")}},
		{"one only", corev1.PodStatus{PodIP: "1.1.1.1"}, corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: list("1.1.1.1")}},
		{"agreed", corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: list("1.1.1.1", "::1")}, corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: list("1.1.1.1", "::1")}},
		{"one wins", corev1.PodStatus{PodIP: "2.2.2.2", PodIPs: list("1.1.1.1", "::1")}, corev1.PodStatus{PodIP: "2.2.2.2", PodIPs: list("2.2.2.2")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defaults.SetDefaults_PodStatus(&tc.set)
			if diff := cmp.Diff(tc.want, tc.set); diff != "" {
				t.Errorf("defaulted status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultPullPolicy(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                        corev1.PullAlways,
		"nginx:latest":                 corev1.PullAlways,
		"nginx:1":                      corev1.PullIfNotPresent,
		"nginx:latest-1":               corev1.PullIfNotPresent,
		"nginx" + digest:               corev1.PullIfNotPresent,
		"nginx:1" + digest:             corev1.PullIfNotPresent,
		"nginx:latest" + digest:        corev1.PullAlways,
		"localhost:5000/nginx":         corev1.PullAlways,
		"localhost:5000/nginx:1":       corev1.PullIfNotPresent,
		"[2001:db8::1]:5000/a/b:c":     corev1.PullIfNotPresent,
		"[2001:db8::1]:5000/a/b":       corev1.PullAlways,
		"Registry.example.com/a_b--c":  corev1.PullAlways,
		"registry.example.com/a__b.c":  corev1.PullAlways,
		"":                             corev1.PullIfNotPresent,
		" nginx":                       corev1.PullIfNotPresent,
		"Nginx:latest":                 corev1.PullIfNotPresent,
		"nginx:":                       corev1.PullIfNotPresent,
		"nginx:latest@sha256:tooshort": corev1.PullIfNotPresent,

		strings.Repeat("a", 247):                       corev1.PullAlways,
		strings.Repeat("a", 248):                       corev1.PullIfNotPresent, // library/ comes before it
		"docker.io/" + strings.Repeat("a", 248):        corev1.PullIfNotPresent,
		"example.com/" + strings.Repeat("a", 255):      corev1.PullAlways,
		"example.com/" + strings.Repeat("a", 256):      corev1.PullIfNotPresent,
		"team/" + strings.Repeat("a", 251):             corev1.PullIfNotPresent,
		"a_b.c/" + strings.Repeat("a", 250):            corev1.PullIfNotPresent, // not a registry, for its underscore
		strings.Repeat("0123456789abcdef", 4):          corev1.PullIfNotPresent, // an ID
		strings.Repeat("0123456789abcdef", 4) + ":tag": corev1.PullIfNotPresent,
		"a/" + strings.Repeat("0123456789abcdef", 4):   corev1.PullAlways,
	} {
		c := corev1.Container{Image: image}
		defaults.SetDefaults_Container(&c)
		if c.ImagePullPolicy != want {
			t.Errorf("image %q: got %s, want %s", image, c.ImagePullPolicy, want)
		}
	}
}

// TestLargePodResources checks that the sums that a Pod gets are read as they are written.
func TestLargePodResources(t *testing.T) {
	for _, test := range []struct {
		resource            corev1.ResourceName
		first, second, want string
	}{
		{"memory", "1Gi", "1Gi", "2Gi"},
		{"memory", "500E", "500E", "1e21"},
		{"memory", "100Ti", "1e20", "100000109951162777600"},
		{"memory", "6Ei", "6Ei", "13835058055282163712"},
		{"hugepages-2Mi", "6Ei", "6Ei", "13835058055282163712"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
		for _, text := range []string{test.first, test.second} {
			list := corev1.ResourceList{test.resource: resource.MustParse(text)}
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: list, Limits: list}})
		}
		defaults.SetDefaults_Pod(pod)
		request := pod.Spec.Resources.Requests[test.resource]
		if read := resource.MustParse(request.String()); read.Cmp(resource.MustParse(test.want)) != 0 {
			t.Errorf("%s and %s of %s are written as %s", test.first, test.second, test.resource, request.String())
		}
	}
}
