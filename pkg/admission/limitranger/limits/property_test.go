// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestProperties checks the properties with random input, and so without a fuzzer.
func TestProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	admitted := 0
	for range 5000 {
		data := make([]byte, random.IntN(200))
		for i := range data {
			data[i] = byte(random.UintN(256))
		}
		if checkProperties(t, data) {
			admitted++
		}
		if t.Failed() {
			t.Fatalf("with the input %q", data)
		}
	}
	if admitted < 500 || admitted > 4500 {
		t.Errorf("%d of 5000 were admitted: both outcomes should be common", admitted)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02\x01\x03\x02\x03\x01\x01\x05\x02\x01\x03\x01\x01\x02\x04\x01\x03"))
	f.Fuzz(func(t *testing.T, data []byte) { checkProperties(t, data) })
}

// checkProperties derives LimitRanges and a Pod from the data and checks what must
// hold for any. It reports whether the Pod was admitted.
func checkProperties(t *testing.T, data []byte) bool {
	in := input{data}
	limitRanges, spec := in.limitRanges(), in.podSpec()
	old := spec.DeepCopy()
	in.resize(old)
	shuffled := slices.Clone(limitRanges)
	rand.New(rand.NewPCG(uint64(len(data)), 0)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	set, same := limits.NewSet(limitRanges), limits.NewSet(shuffled)
	checkContradictions(t, limitRanges)

	defaulted := spec.DeepCopy()
	done := noError(set.SetDefaults(defaulted))
	checkDefaults(t, limitRanges, &spec, defaulted)

	again := defaulted.DeepCopy()
	if done := noError(set.SetDefaults(again)); done != "" {
		t.Errorf("the defaults were set a second time: %s", done)
	}
	if diff := gocmp.Diff(defaulted, again); diff != "" {
		t.Errorf("setting the defaults twice: -once +twice\n%s", diff)
	}

	resized := spec.DeepCopy()
	if done := noError(set.SetResizeDefaults(resized, &spec)); done != "" {
		t.Errorf("a resize that changes nothing got defaults: %s", done)
	}
	noError(set.SetResizeDefaults(resized, old))
	checkResizeDefaults(t, old, &spec, resized, defaulted)

	alike := spec.DeepCopy()
	if got := noError(same.SetDefaults(alike)); got != done {
		t.Errorf("the order of the LimitRanges matters to the record:\n%s\n%s", done, got)
	}
	if diff := gocmp.Diff(defaulted, alike); diff != "" {
		t.Errorf("the order of the LimitRanges matters to the defaults:\n%s", diff)
	}

	for _, spec := range []*corev1.PodSpec{&spec, defaulted} {
		errs := texts(set.Check(spec))
		if want := violations(t, limitRanges, spec, nil); found(errs) != want {
			t.Errorf("%d violations, not %d: %q", want, found(errs), errs)
		}
		if got, want := texts(set.CheckResize(spec, old)), violations(t, limitRanges, spec, old); found(got) != want {
			t.Errorf("%d violations of a resize, not %d: %q", want, found(got), got)
		}
		if got := texts(set.CheckResize(spec, spec)); got != nil {
			t.Errorf("a resize that changes nothing is rejected: %q", got)
		}
		if diff := gocmp.Diff(errs, texts(same.Check(spec))); diff != "" {
			t.Errorf("the order of the LimitRanges matters to the violations:\n%s", diff)
		}
		if len(errs) > 100 {
			continue // which are reported depends on the order of the containers
		}
		reversed := spec.DeepCopy()
		slices.Reverse(reversed.Containers)
		other := texts(set.Check(reversed))
		slices.Sort(other)
		slices.Sort(errs)
		if diff := gocmp.Diff(errs, other); diff != "" {
			t.Errorf("the order of the containers matters:\n%s", diff)
		}
	}
	return len(set.Check(defaulted)) == 0
}

// found returns the number of violations in a report, which names at most 100.
func found(report []string) int {
	more := 0
	if len(report) > 100 {
		if _, err := fmt.Sscanf(report[100], "and %d more", &more); err != nil {
			panic(err)
		}
		return 100 + more
	}
	return len(report)
}

// checkDefaults checks that each container has the defaults of the first
// LimitRange, by name, that has any for the resource.
func checkDefaults(t *testing.T, limitRanges []*v1.LimitRange, before, after *corev1.PodSpec) {
	sorted := slices.SortedFunc(slices.Values(limitRanges), func(a, b *v1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	first := func(of func(corev1.LimitRangeItem) corev1.ResourceList, name corev1.ResourceName) (resource.Quantity, bool) {
		for _, limitRange := range sorted {
			for _, item := range limitRange.Spec.Limits {
				if quantity, found := of(item)[name]; found && item.Type == corev1.LimitTypeContainer {
					return quantity, true
				}
			}
		}
		return resource.Quantity{}, false
	}
	compare := func(what string, before, after corev1.ResourceList, of func(corev1.LimitRangeItem) corev1.ResourceList) {
		for _, name := range resources {
			want, found := before[name]
			if !found {
				want, found = first(of, name)
			}
			if got, has := after[name]; has != found || !got.Equal(want) {
				t.Errorf("%s of %s is %v (%t), not %v (%t)", what, name, got, has, want, found)
			}
		}
	}
	a, b := allContainers(before), allContainers(after)
	for i := range b {
		compare("the request", a[i].Resources.Requests, b[i].Resources.Requests, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.DefaultRequest })
		compare("the limit", a[i].Resources.Limits, b[i].Resources.Limits, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Default })
	}
}

// checkResizeDefaults checks that a resize gets the defaults of a new Pod for the
// resources that it changes, and for no others.
func checkResizeDefaults(t *testing.T, old, sent, got, created *corev1.PodSpec) {
	before, after, actual, all := allContainers(old), allContainers(sent), allContainers(got), allContainers(created)
	for i := range after {
		for _, name := range resources {
			want := after[i].Resources
			if changed(before[i].Resources, want, name) {
				want = all[i].Resources
			}
			if changed(want, actual[i].Resources, name) {
				t.Errorf("%s of a resized container is %v, not %v", name, actual[i].Resources, want)
			}
		}
	}
}

// changed reports whether the request or the limit of a resource differs.
func changed(a, b corev1.ResourceRequirements, name corev1.ResourceName) bool {
	differ := func(a, b *big.Rat) bool { return (a == nil) != (b == nil) || a != nil && a.Cmp(b) != 0 }
	return differ(number(a.Requests, name), number(b.Requests, name)) || differ(number(a.Limits, name), number(b.Limits, name))
}

// violations counts, in the simplest way, the bounds that are violated. With an old
// Pod, it counts only the bounds of resources that have changed.
func violations(t *testing.T, limitRanges []*v1.LimitRange, spec, old *corev1.PodSpec) int {
	count := 0
	add := func(item corev1.LimitRangeItem, now corev1.ResourceRequirements, before *corev1.ResourceRequirements) {
		for _, name := range resources {
			if before == nil || changed(*before, now, name) {
				count += violationsOf(item, name, number(now.Requests, name), number(now.Limits, name))
			}
		}
	}
	whole, containers := total(t, spec), allContainers(spec)
	for _, limitRange := range limitRanges {
		for _, item := range limitRange.Spec.Limits {
			switch item.Type {
			case corev1.LimitTypePod:
				var before *corev1.ResourceRequirements
				if old != nil {
					before = new(total(t, old))
				}
				add(item, whole, before)
			case corev1.LimitTypeContainer:
				for i := range containers {
					var before *corev1.ResourceRequirements
					if old != nil {
						before = &allContainers(old)[i].Resources
					}
					add(item, containers[i].Resources, before)
				}
			}
		}
	}
	return count
}

// total is the usage of the Pod as a whole, as Kubernetes computes it.
func total(t *testing.T, spec *corev1.PodSpec) corev1.ResourceRequirements {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	options := resourcehelper.PodResourcesOptions{ExcludeOverhead: true, SkipPodLevelResources: true}
	whole := corev1.ResourceRequirements{Requests: resourcehelper.PodRequests(pod, options), Limits: resourcehelper.PodLimits(pod, options)}
	if len(spec.InitContainers) == 0 {
		for _, name := range resources {
			sum := new(big.Rat)
			for _, c := range spec.Containers {
				if limit := number(c.Resources.Limits, name); limit != nil {
					sum.Add(sum, limit)
				}
			}
			if got := number(whole.Limits, name); got != nil && got.Cmp(sum) != 0 {
				t.Errorf("the library adds up %s, not %s", got, sum)
			}
		}
	}
	if spec.Resources != nil {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if quantity, found := spec.Resources.Requests[name]; found {
				whole.Requests[name] = quantity
			}
			if quantity, found := spec.Resources.Limits[name]; found {
				whole.Limits[name] = quantity
			}
		}
	}
	return whole
}

func violationsOf(item corev1.LimitRangeItem, name corev1.ResourceName, request, limit *big.Rat) int {
	count := 0
	expect := func(ok bool) {
		if !ok {
			count++
		}
	}
	if lowest := number(item.Min, name); lowest != nil {
		lowest, request, limit, _ := rounded(lowest, request, limit)
		expect(request != nil && request.Cmp(lowest) >= 0 && (limit == nil || limit.Cmp(lowest) >= 0))
	}
	if highest := number(item.Max, name); highest != nil {
		highest, request, limit, _ := rounded(highest, request, limit)
		expect(limit != nil && limit.Cmp(highest) <= 0 && (request == nil || request.Cmp(highest) <= 0))
	}
	if widest := number(item.MaxLimitRequestRatio, name); widest != nil {
		_, request, limit, unit := rounded(widest, request, limit)
		expect(request != nil && limit != nil && request.Sign() > 0 && limit.Sign() > 0 && notWider(limit, request, widest, unit))
	}
	return count
}

// notWider compares a ratio with its bound. Numbers of units are divided as
// floating-point numbers, and the bound has a unit of its own, as in core/v1.
func notWider(limit, request, widest, unit *big.Rat) bool {
	if unit == nil {
		return limit.Cmp(new(big.Rat).Mul(request, widest)) <= 0
	}
	in := func(n, unit *big.Rat) float64 {
		f, _ := new(big.Rat).Quo(n, unit).Float64()
		return f
	}
	widest, _, _, of := rounded(widest, nil, nil)
	return in(limit, unit)/in(request, unit)*in(big.NewRat(1, 1), of) <= in(widest, of)
}

// rounded rounds numbers up to thousandths where all of those fit an int64, else
// to whole numbers where those do, else not at all. It returns the unit, nil for
// none.
func rounded(bound, request, limit *big.Rat) (_, _, _, unit *big.Rat) {
	unit = big.NewRat(1, 1000)
	for _, n := range []*big.Rat{bound, request, limit} {
		switch {
		case n == nil:
		case n.Sign() < 0 || n.Cmp(big.NewRat(math.MaxInt64, 1)) > 0:
			return bound, request, limit, nil
		case n.Cmp(big.NewRat(resource.MaxMilliValue, 1)) > 0:
			unit = big.NewRat(1, 1)
		}
	}
	up := func(n *big.Rat) *big.Rat {
		if n == nil {
			return nil
		}
		units := new(big.Rat).Quo(n, unit)
		whole, rest := new(big.Int).DivMod(units.Num(), units.Denom(), new(big.Int))
		if rest.Sign() != 0 {
			whole.Add(whole, big.NewInt(1))
		}
		return units.Mul(units.SetInt(whole), unit)
	}
	return up(bound), up(request), up(limit), unit
}

func number(list corev1.ResourceList, name corev1.ResourceName) *big.Rat {
	quantity, found := list[name]
	if !found {
		return nil
	}
	return exact(quantity)
}

func exact(quantity resource.Quantity) *big.Rat {
	number, ok := new(big.Rat).SetString(quantity.AsDec().String())
	if !ok {
		panic(fmt.Sprintf("%v is no number", quantity))
	}
	return number
}

func allContainers(spec *corev1.PodSpec) []corev1.Container {
	return slices.Concat(spec.Containers, spec.InitContainers)
}
