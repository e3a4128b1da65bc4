// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
)

func TestCheckResize(t *testing.T) {
	both := func(pairs ...string) corev1.ResourceRequirements {
		return needs(quantities(pairs...), quantities(pairs...))
	}
	spec := func(containers ...corev1.Container) corev1.PodSpec { return corev1.PodSpec{Containers: containers} }
	perContainer := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: quantities("cpu", "1", "memory", "1Gi")}
	perPod := corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: quantities("cpu", "3")}

	for _, test := range []struct {
		name     string
		limit    corev1.LimitRangeItem
		old, new corev1.PodSpec
		want     []string
	}{{
		name:  "another resource",
		limit: perContainer,
		old:   spec(container("c", both("cpu", "2", "memory", "512Mi"))),
		new:   spec(container("c", both("cpu", "2", "memory", "1Gi"))),
	}, {
		name:  "another container",
		limit: perContainer,
		old:   spec(container("c", both("cpu", "2", "memory", "1Gi")), container("d", both("cpu", "500m", "memory", "1Gi"))),
		new:   spec(container("c", both("cpu", "2", "memory", "1Gi")), container("d", both("cpu", "1", "memory", "1Gi"))),
	}, {
		name:  "the same amount in other words",
		limit: perContainer,
		old:   spec(container("c", both("cpu", "2", "memory", "2Gi"))),
		new:   spec(container("c", both("cpu", "2000m", "memory", "2048Mi"))),
	}, {
		name:  "what was absent, and is",
		limit: perContainer,
		old:   spec(container("c", needs(nil, nil))),
		new:   spec(container("c", needs(quantities(), nil))),
	}, {
		name:  "the request, where the limit is too large",
		limit: perContainer,
		old:   spec(container("c", needs(quantities("cpu", "1"), quantities("cpu", "2", "memory", "1Gi")))),
		new:   spec(container("c", needs(quantities("cpu", "500m"), quantities("cpu", "2", "memory", "1Gi")))),
		want:  []string{"maximum cpu usage per Container is 1, but limit is 2"},
	}, {
		name:  "nearer to the bound, and still beyond it",
		limit: perContainer,
		old:   spec(container("c", both("cpu", "4", "memory", "2Gi"))),
		new:   spec(container("c", both("cpu", "3", "memory", "2Gi"))),
		want:  []string{"maximum cpu usage per Container is 1, but limit is 3"},
	}, {
		name:  "a limit that is taken away",
		limit: perContainer,
		old:   spec(container("c", both("cpu", "1", "memory", "2Gi"))),
		new:   spec(container("c", both("cpu", "1"))),
		want:  []string{"maximum memory usage per Container is 1Gi.  No limit is specified"},
	}, {
		name:  "a total that stays",
		limit: perPod,
		old:   spec(container("c", both("cpu", "2")), container("d", both("cpu", "3"))),
		new:   spec(container("c", both("cpu", "4")), container("d", both("cpu", "1"))),
	}, {
		name:  "a total that changes",
		limit: perPod,
		old:   spec(container("c", both("cpu", "2")), container("d", both("cpu", "3"))),
		new:   spec(container("c", both("cpu", "2")), container("d", both("cpu", "2"))),
		want:  []string{"maximum cpu usage per Pod is 3, but limit is 4"},
	}, {
		name:  "init containers",
		limit: perContainer,
		old:   corev1.PodSpec{InitContainers: []corev1.Container{sidecar("c", both("cpu", "2", "memory", "1Gi")), sidecar("d", both("cpu", "1", "memory", "1Gi"))}},
		new:   corev1.PodSpec{InitContainers: []corev1.Container{sidecar("c", both("cpu", "2", "memory", "1Gi")), sidecar("d", both("cpu", "2", "memory", "1Gi"))}},
		want:  []string{"maximum cpu usage per Container is 1, but limit is 2"},
	}} {
		t.Run(test.name, func(t *testing.T) {
			set := limits.NewSet([]*v1.LimitRange{limitRange("a", test.limit)})
			if diff := cmp.Diff(test.want, texts(set.CheckResize(&test.new, &test.old))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetResizeDefaults(t *testing.T) {
	set := limits.NewSet([]*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{
		Type:           corev1.LimitTypeContainer,
		DefaultRequest: quantities("cpu", "1", "memory", "1Gi"),
		Default:        quantities("cpu", "2", "memory", "2Gi"),
	})})
	old := corev1.PodSpec{
		Containers:     []corev1.Container{container("same", needs(quantities("cpu", "1"), nil)), container("resized", needs(quantities("cpu", "1"), nil))},
		InitContainers: []corev1.Container{sidecar("s", needs(nil, nil))},
	}
	spec := corev1.PodSpec{
		Containers:     []corev1.Container{container("same", needs(quantities("cpu", "1000m"), nil)), container("resized", needs(quantities("cpu", "1500m"), nil))},
		InitContainers: []corev1.Container{sidecar("s", needs(nil, quantities("memory", "1Gi")))},
	}
	want := corev1.PodSpec{
		Containers:     []corev1.Container{container("same", needs(quantities("cpu", "1000m"), nil)), container("resized", needs(quantities("cpu", "1500m"), quantities("cpu", "2")))},
		InitContainers: []corev1.Container{sidecar("s", needs(quantities("memory", "1Gi"), quantities("memory", "1Gi")))},
	}
	text := noError(set.SetResizeDefaults(&spec, &old))
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if want := "LimitRanger plugin set: cpu limit for container resized; memory request for init container s"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}
