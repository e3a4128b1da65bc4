// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func TestContradictions(t *testing.T) {
	type item = corev1.LimitRangeItem
	cpu := func(quantity string) corev1.ResourceList { return quantities("cpu", quantity) }
	// As they are when they have been decoded: with defaults.
	atMost := func(quantity string) item {
		return item{Type: corev1.LimitTypeContainer, Max: cpu(quantity), Default: cpu(quantity), DefaultRequest: cpu(quantity)}
	}
	atLeast := func(quantity string) item {
		return item{Type: corev1.LimitTypeContainer, Min: cpu(quantity), DefaultRequest: cpu(quantity)}
	}
	byDefault := func(limit, request string) item {
		return item{Type: corev1.LimitTypeContainer, Default: cpu(limit), DefaultRequest: cpu(request)}
	}
	const both = `LimitRanges "a" and "b" contradict each other: `

	for name, test := range map[string]struct {
		a, b []item
		want []string
	}{
		"nothing in common": {a: []item{atMost("1")}, b: []item{{Type: corev1.LimitTypeContainer, Min: quantities("memory", "1Gi")}}},
		"alike":             {a: []item{atMost("1")}, b: []item{atMost("1")}},
		"they meet":         {a: []item{atMost("1")}, b: []item{{Type: corev1.LimitTypeContainer, Min: cpu("1000m")}}},
		"min above max": {
			[]item{atMost("1")}, []item{atLeast("2")},
			[]string{both + `min cpu per Container is 2 in "b", but max cpu per Container is 1 in "a"`},
		},
		"max below min": {
			[]item{atLeast("2")}, []item{atMost("1500m")},
			[]string{both + `min cpu per Container is 2 in "a", but max cpu per Container is 1500m in "b"`},
		},
		"several resources": {
			[]item{{Type: corev1.LimitTypeContainer, Min: quantities("cpu", "2", "memory", "2Gi", "example.com/gpu", "1")}},
			[]item{{Type: corev1.LimitTypeContainer, Max: quantities("cpu", "1", "memory", "1Gi", "example.com/gpu", "1")}},
			[]string{
				both + `min cpu per Container is 2 in "a", but max cpu per Container is 1 in "b"`,
				both + `min memory per Container is 2Gi in "a", but max memory per Container is 1Gi in "b"`,
			},
		},
		"default above max": {
			[]item{atMost("1")}, []item{byDefault("2", "1")},
			[]string{both + `default cpu per Container is 2 in "b", but max cpu per Container is 1 in "a"`},
		},
		"default below min": {
			[]item{byDefault("1", "1")}, []item{atLeast("2")},
			[]string{both + `min cpu per Container is 2 in "b", but default cpu per Container is 1 in "a"`},
		},
		"default request above max": {
			[]item{atMost("1")}, []item{{Type: corev1.LimitTypeContainer, DefaultRequest: cpu("2")}},
			[]string{both + `defaultRequest cpu per Container is 2 in "b", but max cpu per Container is 1 in "a"`},
		},
		"default request below min": {
			[]item{byDefault("2", "1")}, []item{{Type: corev1.LimitTypeContainer, Min: cpu("1500m")}},
			[]string{both + `min cpu per Container is 1500m in "b", but defaultRequest cpu per Container is 1 in "a"`},
		},
		"default request above a default that never applies": {
			a: []item{byDefault("3", "2")}, b: []item{byDefault("1", "1")},
		},
		"default request above the other's default": {
			[]item{{Type: corev1.LimitTypeContainer, DefaultRequest: cpu("2")}}, []item{{Type: corev1.LimitTypeContainer, Default: cpu("1")}},
			[]string{both + `defaultRequest cpu per Container is 2 in "a", but default cpu per Container is 1 in "b"`},
		},
		"the lower max comes first and gives the default": {a: []item{atMost("1")}, b: []item{atMost("2")}},
		"the higher max comes first and gives the default": {
			[]item{atMost("2")}, []item{atMost("1")},
			[]string{both + `default cpu per Container is 2 in "a", but max cpu per Container is 1 in "b"`},
		},
		"the higher min comes first and gives the default": {a: []item{atLeast("2")}, b: []item{atLeast("1")}},
		"the lower min comes first and gives the default": {
			[]item{atLeast("1")}, []item{atLeast("2")},
			[]string{both + `min cpu per Container is 2 in "b", but defaultRequest cpu per Container is 1 in "a"`},
		},
		"a container's min above a Pod's max": {
			[]item{{Type: corev1.LimitTypePod, Max: cpu("1")}}, []item{atLeast("2")},
			[]string{both + `min cpu per Container is 2 in "b", but max cpu per Pod is 1 in "a"`},
		},
		"a container's default above a Pod's max": {
			[]item{{Type: corev1.LimitTypePod, Max: cpu("1")}}, []item{byDefault("2", "1")},
			[]string{both + `default cpu per Container is 2 in "b", but max cpu per Pod is 1 in "a"`},
		},
		"a Pod's min above a container's max": {a: []item{{Type: corev1.LimitTypePod, Min: cpu("2")}}, b: []item{atMost("1")}},
		"defaults too far apart": {
			[]item{byDefault("1", "300m")}, []item{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: cpu("2500m")}},
			[]string{both + `default and defaultRequest cpu per Container are 1 and 300m in "a", but maxLimitRequestRatio cpu per Container is 2500m in "b"`},
		},
		"defaults as far apart as may be": {
			a: []item{byDefault("900m", "300m")}, b: []item{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: cpu("3")}},
		},
		"Pods": {
			[]item{{Type: corev1.LimitTypePod, Min: cpu("2")}}, []item{{Type: corev1.LimitTypePod, Max: cpu("1")}},
			[]string{both + `min cpu per Pod is 2 in "a", but max cpu per Pod is 1 in "b"`},
		},
		"claims": {
			[]item{{Type: corev1.LimitTypePersistentVolumeClaim, Min: quantities("storage", "2Gi")}},
			[]item{{Type: corev1.LimitTypePersistentVolumeClaim, Max: quantities("storage", "1Gi"), Default: quantities("storage", "1Gi")}},
			[]string{both + `min storage per PersistentVolumeClaim is 2Gi in "a", but max storage per PersistentVolumeClaim is 1Gi in "b"`},
		},
		"defaults of other types mean nothing": {
			a: []item{{Type: corev1.LimitTypePersistentVolumeClaim, Default: quantities("storage", "2Gi")}},
			b: []item{{Type: corev1.LimitTypePersistentVolumeClaim, Max: quantities("storage", "1Gi")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := limitRange("a", test.a...), limitRange("b", test.b...)
			for _, got := range [][]string{
				limits.Contradictions(a, []*v1.LimitRange{b}),
				limits.Contradictions(b, []*v1.LimitRange{a}),
				limits.Contradictions(b, []*v1.LimitRange{limitRange("b", item{Type: corev1.LimitTypePod, Max: cpu("1m")}), a}),
			} {
				if diff := gocmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
		})
	}
}

// TestContradictionsWithSeveral shows that each pair is reported, and that what
// a third LimitRange gives by default takes the harm from another's.
func TestContradictionsWithSeveral(t *testing.T) {
	atMost := func(name, quantity string) *v1.LimitRange {
		cpu := quantities("cpu", quantity)
		return limitRange(name, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpu, Default: cpu, DefaultRequest: cpu})
	}
	others := []*v1.LimitRange{atMost("c", "1"), atMost("d", "2"), atMost("e", "5")}
	want := []string{
		`LimitRanges "b" and "c" contradict each other: default cpu per Container is 3 in "b", but max cpu per Container is 1 in "c"`,
		`LimitRanges "b" and "d" contradict each other: default cpu per Container is 3 in "b", but max cpu per Container is 2 in "d"`,
	}
	if diff := gocmp.Diff(want, limits.Contradictions(atMost("b", "3"), others)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	first := limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", "1"), DefaultRequest: quantities("cpu", "1")})
	if got := limits.Contradictions(atMost("b", "3"), append(others, first)); got != nil {
		t.Errorf("got %q, although another default comes first", got)
	}
}

// checkContradictions checks that two LimitRanges without a contradiction have
// bounds that meet, and that neither excludes what the other gives by default.
func checkContradictions(t *testing.T, limitRanges []*v1.LimitRange) {
	for i, a := range limitRanges {
		for _, b := range limitRanges[i+1:] {
			two := []*v1.LimitRange{a, b}
			found := limits.Contradictions(a, two[1:])
			if other := limits.Contradictions(b, two[:1]); !slices.Equal(found, other) {
				t.Errorf("who is asked matters:\n%q\n%q", found, other)
			}
			if found != nil {
				continue
			}
			spec := corev1.PodSpec{Containers: []corev1.Container{container("c", needs(nil, nil))}}
			limits.NewSet(two).SetDefaults(&spec)
			requests, limits := spec.Containers[0].Resources.Requests, spec.Containers[0].Resources.Limits
			checkBounds(t, a, b, requests, limits)
			checkBounds(t, b, a, requests, limits)
		}
	}
}

// checkBounds checks that what is given in a, as far as it is in force, is within
// the bounds of b.
func checkBounds(t *testing.T, a, b *v1.LimitRange, requests, limits corev1.ResourceList) {
	notAbove := func(lesser, greater corev1.ResourceList, inForce ...corev1.ResourceList) {
		for _, name := range resources {
			low, high := number(lesser, name), number(greater, name)
			if low == nil || high == nil || low.Cmp(high) <= 0 {
				continue
			}
			if slices.ContainsFunc(inForce, func(list corev1.ResourceList) bool {
				n := number(list, name)
				return n.Cmp(low) != 0 && n.Cmp(high) != 0
			}) {
				continue
			}
			t.Errorf("%v of %s is above %v and no contradiction was found between\n%v\n%v", lesser[name], name, greater[name], a.Spec, b.Spec)
		}
	}
	for _, i := range a.Spec.Limits {
		for _, j := range b.Spec.Limits {
			if i.Type != j.Type {
				continue
			}
			notAbove(i.Min, j.Max)
			if i.Type == corev1.LimitTypeContainer {
				notAbove(i.Default, j.Max, limits)
				notAbove(i.DefaultRequest, j.Max, requests)
				notAbove(i.Min, j.Default, limits)
				notAbove(i.Min, j.DefaultRequest, requests)
			}
		}
	}
}
