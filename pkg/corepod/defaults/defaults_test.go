// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

func TestPodResources(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	limited := container(list("cpu", "1", "memory", "1Gi"), list("cpu", "2", "memory", "1Gi"))
	requests := container(list("cpu", "1"), nil)
	huge := container(list("hugepages-2Mi", "4Mi"), list("hugepages-2Mi", "4Mi"))
	other := container(list("example.com/gpu", "1"), list("example.com/gpu", "1"))
	for name, test := range map[string]struct {
		pod        *corev1.ResourceRequirements
		containers []corev1.Container
		ephemeral  int
		want       *corev1.ResourceRequirements
	}{
		"none":  {nil, []corev1.Container{limited}, 0, nil},
		"empty": {&corev1.ResourceRequirements{}, []corev1.Container{limited}, 0, &corev1.ResourceRequirements{}},
		"requests of containers": {
			&corev1.ResourceRequirements{Requests: list("memory", "1Gi")}, []corev1.Container{requests, requests}, 0,
			&corev1.ResourceRequirements{Requests: list("memory", "1Gi", "cpu", "2")},
		},
		"limits of all containers": {
			&corev1.ResourceRequirements{Requests: list("cpu", "1")}, []corev1.Container{limited, limited}, 0,
			&corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "2Gi"), Limits: list("cpu", "4", "memory", "2Gi")},
		},
		"more requested than the limits of containers": {
			&corev1.ResourceRequirements{Requests: list("cpu", "8")}, []corev1.Container{limited}, 0,
			&corev1.ResourceRequirements{Requests: list("cpu", "8", "memory", "1Gi"), Limits: list("cpu", "8", "memory", "1Gi")},
		},
		"limits of some containers": {
			&corev1.ResourceRequirements{Requests: list("cpu", "1")}, []corev1.Container{limited, requests}, 0,
			&corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi")},
		},
		"with an ephemeral container": {
			&corev1.ResourceRequirements{Requests: list("cpu", "1")}, []corev1.Container{limited}, 1,
			&corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi")},
		},
		"limits of the Pod": {
			&corev1.ResourceRequirements{Limits: list("cpu", "3", "memory", "3Gi")}, []corev1.Container{requests}, 0,
			&corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "3Gi"), Limits: list("cpu", "3", "memory", "3Gi")},
		},
		"huge pages": {
			&corev1.ResourceRequirements{Requests: list("cpu", "1")}, []corev1.Container{huge, huge}, 0,
			&corev1.ResourceRequirements{Requests: list("cpu", "1", "hugepages-2Mi", "8Mi"), Limits: list("hugepages-2Mi", "8Mi")},
		},
		"requested huge pages": {
			&corev1.ResourceRequirements{Requests: list("hugepages-2Mi", "16Mi")}, []corev1.Container{huge}, 0,
			&corev1.ResourceRequirements{Requests: list("hugepages-2Mi", "16Mi"), Limits: list("hugepages-2Mi", "16Mi")},
		},
		"resources that only containers have": {
			&corev1.ResourceRequirements{Requests: list("cpu", "1")}, []corev1.Container{other}, 0,
			&corev1.ResourceRequirements{Requests: list("cpu", "1")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := corev1.PodSpec{Resources: test.pod, Containers: test.containers, EphemeralContainers: make([]corev1.EphemeralContainer, test.ephemeral)}
			defaults.PodResources(&spec)
			if diff := cmp.Diff(test.want, spec.Resources, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
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
		defaults.PodResources(&pod.Spec)
		request := pod.Spec.Resources.Requests[test.resource]
		if read := resource.MustParse(request.String()); read.Cmp(resource.MustParse(test.want)) != 0 {
			t.Errorf("%s and %s of %s are written as %s", test.first, test.second, test.resource, request.String())
		}
	}
}
