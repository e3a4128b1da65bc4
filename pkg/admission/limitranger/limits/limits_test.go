// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func TestSetDefaults(t *testing.T) {
	cpuAndMemory := limitRange("a", corev1.LimitRangeItem{
		Type:           corev1.LimitTypeContainer,
		Default:        quantities("cpu", "200m", "memory", "200Mi"),
		DefaultRequest: quantities("cpu", "100m", "memory", "100Mi"),
	})
	full := needs(quantities("cpu", "100m", "memory", "100Mi"), quantities("cpu", "200m", "memory", "200Mi"))

	for name, test := range map[string]struct {
		limitRanges []*v1.LimitRange
		spec, want  corev1.PodSpec
		done        string
	}{
		"nothing to set": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("a", needs(nil, nil))}},
			want: corev1.PodSpec{Containers: []corev1.Container{container("a", needs(nil, nil))}},
		},
		"nothing missing": {
			limitRanges: []*v1.LimitRange{cpuAndMemory},
			spec:        corev1.PodSpec{Containers: []corev1.Container{container("a", full)}},
			want:        corev1.PodSpec{Containers: []corev1.Container{container("a", full)}},
		},
		"all of it missing": {
			limitRanges: []*v1.LimitRange{cpuAndMemory},
			spec:        corev1.PodSpec{Containers: []corev1.Container{container("a", needs(nil, nil))}},
			want:        corev1.PodSpec{Containers: []corev1.Container{container("a", full)}},
			done:        "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for container a",
		},
		"some of it missing, in some containers": {
			limitRanges: []*v1.LimitRange{cpuAndMemory},
			spec: corev1.PodSpec{
				Containers: []corev1.Container{
					container("a", needs(quantities("cpu", "1", "memory", "1Mi"), quantities("memory", "2Mi"))),
					container("b", full),
					container("c", needs(quantities("cpu", "1"), quantities("cpu", "2", "memory", "2Mi"))),
				},
				InitContainers: []corev1.Container{
					container("d", needs(quantities("memory", "1Mi"), nil)),
					sidecar("e", needs(nil, quantities("cpu", "1", "memory", "1Gi"))),
				},
			},
			want: corev1.PodSpec{
				Containers: []corev1.Container{
					container("a", needs(quantities("cpu", "1", "memory", "1Mi"), quantities("cpu", "200m", "memory", "2Mi"))),
					container("b", full),
					container("c", needs(quantities("cpu", "1", "memory", "100Mi"), quantities("cpu", "2", "memory", "2Mi"))),
				},
				InitContainers: []corev1.Container{
					container("d", needs(quantities("cpu", "100m", "memory", "1Mi"), quantities("cpu", "200m", "memory", "200Mi"))),
					sidecar("e", needs(quantities("cpu", "100m", "memory", "100Mi"), quantities("cpu", "1", "memory", "1Gi"))),
				},
			},
			done: "LimitRanger plugin set: cpu limit for container a; memory request for container c; " +
				"cpu request for init container d; cpu, memory limit for init container d; cpu, memory request for init container e",
		},
		"a zero is not missing": {
			limitRanges: []*v1.LimitRange{cpuAndMemory},
			spec:        corev1.PodSpec{Containers: []corev1.Container{container("a", needs(quantities("cpu", "0", "memory", "0"), quantities("cpu", "0", "memory", "0")))}},
			want:        corev1.PodSpec{Containers: []corev1.Container{container("a", needs(quantities("cpu", "0", "memory", "0"), quantities("cpu", "0", "memory", "0")))}},
		},
		"the first by name wins, resource by resource": {
			limitRanges: []*v1.LimitRange{
				limitRange("c", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", "3", "memory", "3Gi", "example.com/gpu", "3")}),
				limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", "1")}),
				limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", "2", "memory", "2Gi"), DefaultRequest: quantities("cpu", "2")}),
			},
			spec: corev1.PodSpec{Containers: []corev1.Container{container("x", needs(nil, nil))}},
			want: corev1.PodSpec{Containers: []corev1.Container{container("x",
				needs(quantities("cpu", "2"), quantities("cpu", "1", "memory", "2Gi", "example.com/gpu", "3")))}},
			done: "LimitRanger plugin set: cpu request for container x; cpu, example.com/gpu, memory limit for container x",
		},
		"limits of other types give no defaults": {
			limitRanges: []*v1.LimitRange{limitRange("a",
				corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Default: quantities("storage", "1")},
				corev1.LimitRangeItem{Type: "example.com/thing", Default: quantities("cpu", "1")},
			)},
			spec: corev1.PodSpec{Containers: []corev1.Container{container("a", needs(nil, nil))}},
			want: corev1.PodSpec{Containers: []corev1.Container{container("a", needs(nil, nil))}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if done := noError(limits.NewSet(test.limitRanges).SetDefaults(&test.spec)); done != test.done {
				t.Errorf("\n got %s\nwant %s", done, test.done)
			}
			if diff := cmp.Diff(test.want, test.spec); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestSetDefaultsSharesNothing shows that a Pod can be changed without changing
// the LimitRange that its values came from.
func TestSetDefaultsSharesNothing(t *testing.T) {
	huge := "123456789012345678901234567890" // is held by reference
	set := limits.NewSet([]*v1.LimitRange{limitRange("a",
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", huge)})})
	for range 2 {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}
		noError(set.SetDefaults(&spec))
		cpu := spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
		if got := cpu.String(); got != huge {
			t.Errorf("got %s, want %s", got, huge)
		}
		cpu.Add(cpu)
	}
}

func TestCheck(t *testing.T) {
	const limitType, podType = corev1.LimitTypeContainer, corev1.LimitTypePod
	perContainer := func(modify func(*corev1.LimitRangeItem)) []*v1.LimitRange {
		item := corev1.LimitRangeItem{Type: limitType}
		modify(&item)
		return []*v1.LimitRange{limitRange("a", item)}
	}
	minCPU := perContainer(func(i *corev1.LimitRangeItem) { i.Min = quantities("cpu", "100m") })
	maxCPU := perContainer(func(i *corev1.LimitRangeItem) { i.Max = quantities("cpu", "200m") })
	ratioCPU := perContainer(func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = quantities("cpu", "1500m") })
	minPod := []*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: podType, Min: quantities("cpu", "1", "memory", "1Gi")})}
	maxPod := []*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: podType, Max: quantities("cpu", "1", "memory", "1Gi")})}
	ratioPod := []*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: podType, MaxLimitRequestRatio: quantities("cpu", "2")})}

	one := func(requests, limits corev1.ResourceList) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{container("a", needs(requests, limits))}}
	}
	both := func(pairs ...string) corev1.ResourceRequirements {
		return needs(quantities(pairs...), quantities(pairs...))
	}

	for name, test := range map[string]struct {
		limitRanges []*v1.LimitRange
		spec        corev1.PodSpec
		want        []string
	}{
		"no limit ranges": {spec: one(nil, nil)},

		"min without request":          {minCPU, one(nil, nil), []string{`minimum cpu usage per Container is 100m.  No request is specified`}},
		"min and a limit alone":        {minCPU, one(nil, quantities("cpu", "1")), []string{`minimum cpu usage per Container is 100m.  No request is specified`}},
		"min over request":             {minCPU, one(quantities("cpu", "99m"), nil), []string{`minimum cpu usage per Container is 100m, but request is 99m`}},
		"min over limit":               {minCPU, one(quantities("cpu", "100m"), quantities("cpu", "50m")), []string{`minimum cpu usage per Container is 100m, but limit is 50m`}},
		"min over both":                {minCPU, one(quantities("cpu", "1m"), quantities("cpu", "2m")), []string{`minimum cpu usage per Container is 100m, but request is 1m`}},
		"min met":                      {minCPU, one(quantities("cpu", "100m"), quantities("cpu", "100m")), nil},
		"min met without limit":        {minCPU, one(quantities("cpu", "100m"), nil), nil},
		"max without limit":            {maxCPU, one(nil, nil), []string{`maximum cpu usage per Container is 200m.  No limit is specified`}},
		"max and a request alone":      {maxCPU, one(quantities("cpu", "1m"), nil), []string{`maximum cpu usage per Container is 200m.  No limit is specified`}},
		"max under limit":              {maxCPU, one(quantities("cpu", "1m"), quantities("cpu", "201m")), []string{`maximum cpu usage per Container is 200m, but limit is 201m`}},
		"max under request":            {maxCPU, one(quantities("cpu", "1"), quantities("cpu", "200m")), []string{`maximum cpu usage per Container is 200m, but request is 1`}},
		"max met":                      {maxCPU, one(quantities("cpu", "200m"), quantities("cpu", "200m")), nil},
		"max met without request":      {maxCPU, one(nil, quantities("cpu", "200m")), nil},
		"ratio without request":        {ratioCPU, one(nil, quantities("cpu", "1")), []string{`cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0`}},
		"ratio with a request of zero": {ratioCPU, one(quantities("cpu", "0"), quantities("cpu", "1")), []string{`cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0`}},
		"ratio without limit":          {ratioCPU, one(quantities("cpu", "1"), nil), []string{`cpu max limit to request ratio per Container is 1500m, but no limit is specified or limit is 0`}},
		"ratio with a limit of zero":   {ratioCPU, one(quantities("cpu", "1"), quantities("cpu", "0")), []string{`cpu max limit to request ratio per Container is 1500m, but no limit is specified or limit is 0`}},
		"ratio exceeded":               {ratioCPU, one(quantities("cpu", "300m"), quantities("cpu", "500m")), []string{`cpu max limit to request ratio per Container is 1500m, but provided ratio is 1.666667`}},
		"ratio met":                    {ratioCPU, one(quantities("cpu", "200m"), quantities("cpu", "300m")), nil},

		"milli precision": {
			perContainer(func(i *corev1.LimitRangeItem) { i.Max = quantities("memory", "1001m") }),
			one(nil, quantities("memory", "1002m")),
			[]string{`maximum memory usage per Container is 1001m, but limit is 1002m`},
		},
		"whole units where milli does not fit": { // 1001m and 1002m are both 2 then
			perContainer(func(i *corev1.LimitRangeItem) { i.Max = quantities("memory", "1001m") }),
			one(quantities("memory", "1002m"), quantities("memory", "9P")),
			[]string{`maximum memory usage per Container is 1001m, but limit is 9P`},
		},
		"whole units that are equal": {
			perContainer(func(i *corev1.LimitRangeItem) { i.Min = quantities("memory", "9223372036854776") }),
			one(quantities("memory", "9223372036854775999m"), nil), // rounds up to the min
			nil,
		},
		"each container, in order, before the next minimum": {
			perContainer(func(i *corev1.LimitRangeItem) {
				i.Min, i.Max = quantities("cpu", "100m", "memory", "1Mi"), quantities("cpu", "200m", "memory", "2Mi")
				i.MaxLimitRequestRatio = quantities("cpu", "1")
			}),
			corev1.PodSpec{
				Containers: []corev1.Container{
					container("a", needs(quantities("cpu", "50m", "memory", "1Ki"), quantities("cpu", "1", "memory", "1Gi"))),
					container("b", both("cpu", "150m", "memory", "3Mi")),
				},
				InitContainers: []corev1.Container{
					container("c", both("cpu", "300m", "memory", "1Mi")),
					sidecar("d", both("cpu", "400m", "memory", "1Mi")),
				},
			},
			[]string{
				`minimum cpu usage per Container is 100m, but request is 50m`,
				`minimum memory usage per Container is 1Mi, but request is 1Ki`,
				`maximum cpu usage per Container is 200m, but limit is 1`,
				`maximum memory usage per Container is 2Mi, but limit is 1Gi`,
				`cpu max limit to request ratio per Container is 1, but provided ratio is 20.000000`,
				`maximum memory usage per Container is 2Mi, but limit is 3Mi`,
				`maximum cpu usage per Container is 200m, but limit is 300m`,
				`maximum cpu usage per Container is 200m, but limit is 400m`,
			},
		},

		"pod: sum of containers": {
			maxPod,
			corev1.PodSpec{Containers: []corev1.Container{
				container("a", both("cpu", "600m", "memory", "512Mi")), container("b", both("cpu", "600m", "memory", "512Mi"))}},
			[]string{`maximum cpu usage per Pod is 1, but limit is 1200m`},
		},
		"pod: sum may leave out containers that say nothing": {
			maxPod,
			corev1.PodSpec{Containers: []corev1.Container{container("a", both("cpu", "1", "memory", "1Gi")), container("b", needs(nil, nil))}},
			nil,
		},
		"pod: nothing said at all": {minPod, one(nil, nil), []string{
			`minimum cpu usage per Pod is 1.  No request is specified`,
			`minimum memory usage per Pod is 1Gi.  No request is specified`,
		}},
		"pod: largest init container alone": {
			maxPod,
			corev1.PodSpec{
				Containers:     []corev1.Container{container("a", both("cpu", "500m", "memory", "512Mi"))},
				InitContainers: []corev1.Container{container("b", both("cpu", "900m")), container("c", both("cpu", "1100m"))},
			},
			[]string{`maximum cpu usage per Pod is 1, but limit is 1100m`},
		},
		"pod: init containers run one after the other": {
			maxPod,
			corev1.PodSpec{
				Containers:     []corev1.Container{container("a", both("cpu", "500m", "memory", "1Gi"))},
				InitContainers: []corev1.Container{container("b", both("cpu", "900m")), container("c", both("cpu", "900m"))},
			},
			nil,
		},
		"pod: sidecars run together with the containers": {
			maxPod,
			corev1.PodSpec{
				Containers:     []corev1.Container{container("a", both("cpu", "600m", "memory", "1Gi"))},
				InitContainers: []corev1.Container{sidecar("b", both("cpu", "500m"))},
			},
			[]string{`maximum cpu usage per Pod is 1, but limit is 1100m`},
		},
		"pod: an init container runs together with the sidecars before it": {
			maxPod,
			corev1.PodSpec{
				Containers: []corev1.Container{container("a", both("cpu", "100m", "memory", "1Gi"))},
				InitContainers: []corev1.Container{
					sidecar("b", both("cpu", "200m")), sidecar("c", both("cpu", "200m")), container("d", both("cpu", "700m"))},
			},
			[]string{`maximum cpu usage per Pod is 1, but limit is 1100m`},
		},
		"pod: an init container does not run together with the sidecars after it": {
			maxPod,
			corev1.PodSpec{
				Containers: []corev1.Container{container("a", both("cpu", "100m", "memory", "1Gi"))},
				InitContainers: []corev1.Container{
					container("d", both("cpu", "700m")), sidecar("b", both("cpu", "200m")), sidecar("c", both("cpu", "200m"))},
			},
			nil,
		},
		"pod: steps differ by resource": {
			maxPod,
			corev1.PodSpec{
				Containers: []corev1.Container{container("a", both("cpu", "1100m", "memory", "1Mi"))},
				InitContainers: []corev1.Container{
					container("b", both("cpu", "1m", "memory", "2Gi"))},
			},
			[]string{`maximum cpu usage per Pod is 1, but limit is 1100m`, `maximum memory usage per Pod is 1Gi, but limit is 2Gi`},
		},
		"pod: its own resources override the sum": {
			maxPod,
			corev1.PodSpec{
				Resources:  &corev1.ResourceRequirements{Limits: quantities("cpu", "900m", "memory", "3Gi"), Requests: quantities("cpu", "2")},
				Containers: []corev1.Container{container("a", both("cpu", "5", "memory", "1Gi"))},
			},
			[]string{`maximum cpu usage per Pod is 1, but request is 2`, `maximum memory usage per Pod is 1Gi, but limit is 3Gi`},
		},
		"pod: its own resources count for cpu and memory only": {
			[]*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: podType, Max: quantities("hugepages-2Mi", "2Mi")})},
			corev1.PodSpec{
				Resources:  &corev1.ResourceRequirements{Limits: quantities("hugepages-2Mi", "2Mi")},
				Containers: []corev1.Container{container("a", both("hugepages-2Mi", "4Mi"))},
			},
			[]string{`maximum hugepages-2Mi usage per Pod is 2Mi, but limit is 4Mi`},
		},
		"pod: overhead does not count": {
			maxPod,
			corev1.PodSpec{
				Overhead:   quantities("cpu", "100", "memory", "1Ti"),
				Containers: []corev1.Container{container("a", both("cpu", "1", "memory", "1Gi"))},
			},
			nil,
		},
		"pod: ratio of the sums": {
			ratioPod,
			corev1.PodSpec{Containers: []corev1.Container{
				container("a", needs(quantities("cpu", "100m"), quantities("cpu", "1"))), container("b", both("cpu", "100m"))}},
			[]string{`cpu max limit to request ratio per Pod is 2, but provided ratio is 5.500000`},
		},
		"pod: quantities beyond an int64": { // are held by reference
			maxPod,
			corev1.PodSpec{
				Containers: []corev1.Container{
					container("a", both("cpu", "100000000000000000000", "memory", "1")), container("b", both("cpu", "100000000000000000000"))},
				InitContainers: []corev1.Container{
					sidecar("c", both("cpu", "100000000000000000000")), sidecar("d", both("cpu", "100000000000000000000")),
					container("e", both("cpu", "300000000000000000000"))},
			},
			[]string{`maximum cpu usage per Pod is 1, but limit is 500E`},
		},

		"other types do not apply": {
			[]*v1.LimitRange{limitRange("a",
				corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Min: quantities("storage", "1Gi")},
				corev1.LimitRangeItem{Type: "example.com/thing", Min: quantities("cpu", "1")},
			)},
			one(nil, nil), nil,
		},
		"several limit ranges, by name": {
			[]*v1.LimitRange{
				limitRange("b",
					corev1.LimitRangeItem{Type: limitType, Min: quantities("memory", "1Gi")},
					corev1.LimitRangeItem{Type: podType, MaxLimitRequestRatio: quantities("cpu", "2")}),
				limitRange("c", corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Min: quantities("storage", "1Gi")}),
				limitRange("a", corev1.LimitRangeItem{Type: limitType, Max: quantities("cpu", "1")}),
			},
			one(quantities("cpu", "1"), quantities("cpu", "3")),
			[]string{
				`LimitRange "a": maximum cpu usage per Container is 1, but limit is 3`,
				`LimitRange "b": minimum memory usage per Container is 1Gi.  No request is specified`,
				`LimitRange "b": cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.spec.DeepCopy()
			if diff := cmp.Diff(test.want, texts(limits.NewSet(test.limitRanges).Check(&test.spec))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(before, &test.spec); diff != "" {
				t.Errorf("the Pod was changed: -before +after\n%s", diff)
			}
		})
	}
}

// TestAllocations shows that a Pod allocates memory only for what is set in it: two
// allocations for each map, and the text.
func TestAllocations(t *testing.T) {
	set := limits.NewSet(benchmarkLimitRanges(5))
	spec := benchmarkSpec(10)
	if got := testing.AllocsPerRun(100, func() {
		for i := range spec.Containers {
			spec.Containers[i].Resources = corev1.ResourceRequirements{}
		}
		noError(set.SetDefaults(spec))
	}); got > 10*2*2+1 {
		t.Errorf("SetDefaults allocates %v times", got)
	}
	if got := testing.AllocsPerRun(100, func() { set.Check(spec) }); got > 0 {
		t.Errorf("Check allocates %v times", got)
	}
}
