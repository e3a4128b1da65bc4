// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"context"
	"fmt"
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
		"a container's default request above a Pod's max": {
			[]item{{Type: corev1.LimitTypePod, Max: cpu("1")}}, []item{{Type: corev1.LimitTypeContainer, DefaultRequest: cpu("2")}},
			[]string{both + `defaultRequest cpu per Container is 2 in "b", but max cpu per Pod is 1 in "a"`},
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
				limits.Contradictions(t.Context(), a, []*v1.LimitRange{b}),
				limits.Contradictions(t.Context(), b, []*v1.LimitRange{a}),
				limits.Contradictions(t.Context(), b, []*v1.LimitRange{limitRange("b", item{Type: corev1.LimitTypePod, Max: cpu("1m")}), a}),
			} {
				if diff := gocmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
		})
	}
}

// TestContradictionsWithSeveral shows that each pair is reported, and that a default
// is not if the default of a third LimitRange is in force instead.
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
	if diff := gocmp.Diff(want, limits.Contradictions(t.Context(), atMost("b", "3"), others)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	ratio := limitRange("c", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: quantities("cpu", "2")})
	apart := limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", "10"), DefaultRequest: quantities("cpu", "1")})
	for name, item := range map[string]corev1.LimitRangeItem{
		"default":         {Default: quantities("cpu", "1")},
		"default request": {DefaultRequest: quantities("cpu", "10")},
	} {
		item.Type = corev1.LimitTypeContainer
		if got := limits.Contradictions(t.Context(), apart, []*v1.LimitRange{limitRange("a", item), ratio}); got != nil {
			t.Errorf("got %q, although another %s comes first", got, name)
		}
	}
	first := limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", "1"), DefaultRequest: quantities("cpu", "1")})
	if got := limits.Contradictions(t.Context(), atMost("b", "3"), append(others, first)); got != nil {
		t.Errorf("got %q, although another default comes first", got)
	}
}

// counted is a context that counts how often it is asked whether it has ended, and
// ends when that has been often enough.
type counted struct {
	context.Context
	asked, end int
}

func (c *counted) Err() error {
	if c.asked++; c.asked > c.end {
		return context.Canceled
	}
	return nil
}

// TestContradictionsAreLinear shows that the items of two LimitRanges are compared
// by their types, that what is found is bounded, and that the end of the request
// ends the comparison.
func TestContradictionsAreLinear(t *testing.T) {
	const items = 3000
	var larger, smaller []corev1.LimitRangeItem
	var want []string
	for i := range items {
		limitType := corev1.LimitType(fmt.Sprintf("example.com/t%04d", i))
		larger = append(larger, corev1.LimitRangeItem{Type: limitType, Min: quantities("cpu", "2")})
		smaller = append(smaller, corev1.LimitRangeItem{Type: limitType, Max: quantities("cpu", "1")})
		want = append(want, fmt.Sprintf(`LimitRanges "a" and "b" contradict each other: min cpu per %s is 2 in "a", but max cpu per %s is 1 in "b"`, limitType, limitType))
	}
	a, others := limitRange("a", larger...), []*v1.LimitRange{limitRange("b", smaller...)}

	ctx := &counted{Context: t.Context(), end: 10 * items}
	if diff := gocmp.Diff(want[:50], limits.Contradictions(ctx, a, others)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if ctx.asked > items+1 {
		t.Errorf("%d pairs of %d items were compared", ctx.asked, items)
	}
	ctx = &counted{Context: t.Context(), end: 10}
	if diff := gocmp.Diff(want[:10], limits.Contradictions(ctx, a, append(others, limitRange("c", smaller...)))); diff != "" {
		t.Errorf("after the end of the context: -want +got\n%s", diff)
	}
	if ctx.asked > 12 {
		t.Errorf("the context was asked %d times, although it ended after 10", ctx.asked)
	}
}

// TestContradictionsOfManyResources shows the same of the resources of one type.
func TestContradictionsOfManyResources(t *testing.T) {
	var high, low []string
	for i := range 3000 {
		high = append(high, fmt.Sprintf("example.com/r%04d", i), "2")
		low = append(low, fmt.Sprintf("example.com/r%04d", i), "1")
	}
	a := limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities(high...), DefaultRequest: quantities(high...)})
	b := limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: quantities(low...)})
	got := limits.Contradictions(t.Context(), a, []*v1.LimitRange{b})
	if len(got) != 50 {
		t.Fatalf("got %d contradictions, want 50", len(got))
	}
	for _, i := range []int{0, 49} {
		want := fmt.Sprintf(`LimitRanges "a" and "b" contradict each other: default example.com/r%04d per Container is 2 in "a", but max example.com/r%04d per Container is 1 in "b"`, i, i)
		if got[i] != want {
			t.Errorf("got %s, want %s", got[i], want)
		}
	}
}

// checkContradictions checks that two LimitRanges without a contradiction have
// bounds that meet, and that neither excludes what the other gives by default.
func checkContradictions(t *testing.T, limitRanges []*v1.LimitRange) {
	for i, a := range limitRanges {
		for _, b := range limitRanges[i+1:] {
			two := []*v1.LimitRange{a, b}
			found := limits.Contradictions(t.Context(), a, two[1:])
			if other := limits.Contradictions(t.Context(), b, two[:1]); !slices.Equal(found, other) {
				t.Errorf("who is asked matters:\n%q\n%q", found, other)
			}
			if found != nil {
				continue
			}
			spec := corev1.PodSpec{Containers: []corev1.Container{container("c", needs(nil, nil))}}
			noError(limits.NewSet(two).SetDefaults(&spec))
			requests, limits := spec.Containers[0].Resources.Requests, spec.Containers[0].Resources.Limits
			checkBounds(t, a, b, requests, limits)
			checkBounds(t, b, a, requests, limits)
		}
	}
}

// checkBounds checks that what is given in a, as far as it is in force, is within
// the bounds of b.
func checkBounds(t *testing.T, a, b *v1.LimitRange, requests, limits corev1.ResourceList) {
	// A default counts only if it is in force. Without one, both are bounds.
	notAbove := func(lesser, greater, defaults, inForce corev1.ResourceList) {
		for _, name := range resources {
			low, high := number(lesser, name), number(greater, name)
			if low == nil || high == nil || low.Cmp(high) <= 0 {
				continue
			}
			if defaults != nil && number(inForce, name).Cmp(number(defaults, name)) != 0 {
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
			notAbove(i.Min, j.Max, nil, nil)
			if i.Type == corev1.LimitTypeContainer {
				notAbove(i.Default, j.Max, i.Default, limits)
				notAbove(i.DefaultRequest, j.Max, i.DefaultRequest, requests)
				notAbove(i.Min, j.Default, j.Default, limits)
				notAbove(i.Min, j.DefaultRequest, j.DefaultRequest, requests)
			}
		}
	}
}

// TestContradictionsAreBounded shows that the first contradictions are reported, with however
// many others there are some.
func TestContradictionsAreBounded(t *testing.T) {
	var others []*v1.LimitRange
	for i := range 60 {
		others = append(others, limitRange(fmt.Sprintf("l-%02d", i), corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: quantities("cpu", "1", "memory", "1")}))
	}
	written := limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: quantities("cpu", "2", "memory", "2")})
	// Two contradictions each, and one with the first, so that the last has one too many.
	delete(others[0].Spec.Limits[0].Max, "memory")
	if got := limits.Contradictions(t.Context(), written, others); len(got) != 50 {
		t.Errorf("got %d contradictions", len(got))
	}
}
