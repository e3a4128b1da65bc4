// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// manyResources makes a ResourceList of n resources.
func manyResources(n int, quantity string) corev1.ResourceList {
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("example.com/r%04d", i), quantity)
	}
	return quantities(pairs...)
}

// values counts the requests and limits of all containers.
func values(spec *corev1.PodSpec) int {
	count := 0
	for _, c := range allContainers(spec) {
		count += len(c.Resources.Requests) + len(c.Resources.Limits)
	}
	return count
}

// TestDefaultsAreBounded shows that what LimitRanges add to a Pod is bounded, and
// that it is what they add that counts.
func TestDefaultsAreBounded(t *testing.T) {
	given := func(spec *corev1.PodSpec, resources int) *corev1.PodSpec {
		for i := range spec.Containers {
			spec.Containers[i].Resources = needs(manyResources(resources, "2"), manyResources(resources, "2"))
		}
		return spec
	}
	for _, test := range []struct {
		name     string
		defaults int // each a request and a limit
		spec     *corev1.PodSpec
		added    int // at most, and exactly if there is no error
		err      string
	}{
		{"just as many as may be", 5, benchmarkSpec(1000), 10_000, ""},
		{"one container too many", 5, benchmarkSpec(1001), 10_000, "the Pod has 1001 containers and the LimitRanges of its namespace have 10 defaults for each: at most 10000 are set in a Pod"},
		{"a thousand for a thousand", 1000, benchmarkSpec(1000), 10_000, "the Pod has 1000 containers and the LimitRanges of its namespace have 2000 defaults for each: at most 10000 are set in a Pod"},
		{"many for one", 20_000, benchmarkSpec(1), 10_000, "the Pod has 1 containers and the LimitRanges of its namespace have 40000 defaults for each: at most 10000 are set in a Pod"},
		{"what is given is not added", 100, given(benchmarkSpec(1000), 100), 0, ""},
		{"what is not given is", 105, given(benchmarkSpec(1000), 100), 10_000, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			list := manyResources(test.defaults, "1")
			set := limits.NewSet([]*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: list, DefaultRequest: list})})
			before := values(test.spec)
			_, err := set.SetDefaults(test.spec)
			if got := fmt.Sprint(err); got != test.err && (err != nil || test.err != "") {
				t.Errorf("got %s, want %s", got, test.err)
			}
			if added := values(test.spec) - before; added > test.added || err == nil && added != test.added {
				t.Errorf("%d were added, not %d", added, test.added)
			}
		})
	}
}

// TestResizeDefaultsAreBounded shows the same of a resize, and that it is rejected
// before all values are compared.
func TestResizeDefaultsAreBounded(t *testing.T) {
	list := manyResources(51, "1")
	set := limits.NewSet([]*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: list, DefaultRequest: list})})
	const want = "the Pod has 1000 containers and the LimitRanges of its namespace have 102 defaults for each: at most 100000 are compared for a Pod"
	if _, err := set.SetResizeDefaults(benchmarkSpec(1000), benchmarkSpec(1000)); fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if done, err := set.SetResizeDefaults(benchmarkSpec(900), benchmarkSpec(900)); done != "" || err != nil {
		t.Errorf("a resize that changes nothing got %q, %v", done, err)
	}
	resized := benchmarkSpec(99)
	for i := range resized.Containers {
		resized.Containers[i].Resources = corev1.ResourceRequirements{}
	}
	before := resized.DeepCopy()
	for i := range before.Containers {
		before.Containers[i].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	if _, err := set.SetResizeDefaults(resized, before); err == nil || !strings.Contains(err.Error(), "at most 10000 are set in a Pod") {
		t.Errorf("got %v, want that these are too many defaults", err)
	}
}

// TestViolationsAreBounded shows that the first violations are reported, in their
// order, and what they cost.
func TestViolationsAreBounded(t *testing.T) {
	check := func(resources, containers int) []string {
		ranges := []*v1.LimitRange{
			limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: manyResources(resources-1, "1")}),
			limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: quantities("example.com/z", "1")}),
		}
		set := limits.NewSet(ranges)
		spec := benchmarkSpec(containers)
		if allocations := testing.AllocsPerRun(1, func() { set.Check(spec) }); allocations > 2000 {
			t.Errorf("%d containers and %d resources: %v allocations", containers, resources, allocations)
		}
		errs := texts(set.Check(spec))
		if resized := texts(set.CheckResize(spec, &corev1.PodSpec{})); containers*resources > 100_000 && !slices.Equal(errs, resized) {
			t.Errorf("a resize is answered otherwise: %q", resized)
		}
		return errs
	}
	want := func(n, more int, of func(i int) string) []string {
		var want []string
		for i := range n {
			want = append(want, of(i))
		}
		return append(want, fmt.Sprintf("and %d more", more))
	}

	t.Run("100 containers", func(t *testing.T) {
		if diff := cmp.Diff(want(100, 100*999, func(int) string {
			return `LimitRange "a": minimum example.com/z usage per Container is 1.  No request is specified`
		}), check(1000, 100)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
	t.Run("60 containers", func(t *testing.T) {
		if diff := cmp.Diff(want(100, 60*1000-100, func(i int) string {
			if i < 60 {
				return `LimitRange "a": minimum example.com/z usage per Container is 1.  No request is specified`
			}
			return fmt.Sprintf(`LimitRange "b": maximum example.com/r%04d usage per Container is 1.  No limit is specified`, i-60)
		}), check(1000, 60)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
	t.Run("101 containers", func(t *testing.T) {
		if diff := cmp.Diff([]string{
			"the Pod has 101 containers and the LimitRanges of its namespace have 1000 bounds for each: at most 100000 are compared for a Pod",
		}, check(1000, 101)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
