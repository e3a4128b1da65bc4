// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"cmp"
	"fmt"
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

// TestProperties tries what FuzzProperties starts from, and a lot of noise.
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

// checkProperties makes LimitRanges and a Pod of the data and checks what has to
// be true of any. It returns whether the Pod was admitted.
func checkProperties(t *testing.T, data []byte) bool {
	in := input{data}
	limitRanges, spec := in.limitRanges(), in.podSpec()
	shuffled := slices.Clone(limitRanges)
	rand.New(rand.NewPCG(uint64(len(data)), 0)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	set, same := limits.NewSet(limitRanges), limits.NewSet(shuffled)
	checkContradictions(t, limitRanges)

	defaulted := spec.DeepCopy()
	done := set.SetDefaults(defaulted)
	checkDefaults(t, limitRanges, &spec, defaulted)

	again := defaulted.DeepCopy()
	if done := set.SetDefaults(again); done != "" {
		t.Errorf("the defaults were set twice: %s", done)
	}
	if diff := gocmp.Diff(defaulted, again); diff != "" {
		t.Errorf("setting the defaults twice: -once +twice\n%s", diff)
	}

	alike := spec.DeepCopy()
	if got := same.SetDefaults(alike); got != done {
		t.Errorf("the order of the LimitRanges matters to the record:\n%s\n%s", done, got)
	}
	if diff := gocmp.Diff(defaulted, alike); diff != "" {
		t.Errorf("the order of the LimitRanges matters to the defaults:\n%s", diff)
	}

	for _, spec := range []*corev1.PodSpec{&spec, defaulted} {
		errs := texts(set.Check(spec))
		if want := violations(limitRanges, spec); len(errs) != want {
			t.Errorf("%d violations, not %d: %q", want, len(errs), errs)
		}
		if diff := gocmp.Diff(errs, texts(same.Check(spec))); diff != "" {
			t.Errorf("the order of the LimitRanges matters to the violations:\n%s", diff)
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

// checkDefaults looks up for each container and resource what the first
// LimitRange by name says.
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

// violations counts, without any cleverness, the bounds that are not met.
func violations(limitRanges []*v1.LimitRange, spec *corev1.PodSpec) int {
	pod := &corev1.Pod{Spec: *spec}
	options := resourcehelper.PodResourcesOptions{ExcludeOverhead: true, SkipPodLevelResources: true}
	requests, podLimits := resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options)
	if spec.Resources != nil {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if quantity, found := spec.Resources.Requests[name]; found {
				requests[name] = quantity
			}
			if quantity, found := spec.Resources.Limits[name]; found {
				podLimits[name] = quantity
			}
		}
	}

	count := 0
	for _, limitRange := range limitRanges {
		for _, item := range limitRange.Spec.Limits {
			switch item.Type {
			case corev1.LimitTypePod:
				count += violationsOf(item, requests, podLimits)
			case corev1.LimitTypeContainer:
				for _, c := range allContainers(spec) {
					count += violationsOf(item, c.Resources.Requests, c.Resources.Limits)
				}
			}
		}
	}
	return count
}

func violationsOf(item corev1.LimitRangeItem, requests, limits corev1.ResourceList) int {
	count := 0
	expect := func(ok bool) {
		if !ok {
			count++
		}
	}
	for name, quantity := range item.Min {
		lowest, request, limit := exact(quantity), number(requests, name), number(limits, name)
		expect(request != nil && request.Cmp(lowest) >= 0 && (limit == nil || limit.Cmp(lowest) >= 0))
	}
	for name, quantity := range item.Max {
		highest, request, limit := exact(quantity), number(requests, name), number(limits, name)
		expect(limit != nil && limit.Cmp(highest) <= 0 && (request == nil || request.Cmp(highest) <= 0))
	}
	for name, quantity := range item.MaxLimitRequestRatio {
		request, limit := number(requests, name), number(limits, name)
		expect(request != nil && limit != nil && request.Sign() > 0 && limit.Sign() > 0 &&
			limit.Cmp(new(big.Rat).Mul(request, exact(quantity))) <= 0)
	}
	return count
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

// resources are those that LimitRanges and Pods are made with.
var resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/gpu"}

// input takes decisions by the bytes of a fuzzer, and by zeros when there are no
// more.
type input struct {
	data []byte
}

func (in *input) below(n int) int {
	if len(in.data) == 0 {
		return 0
	}
	b := in.data[0]
	in.data = in.data[1:]
	return int(b) % n
}

func (in *input) limitRanges() []*v1.LimitRange {
	var limitRanges []*v1.LimitRange
	for i := range in.below(4) {
		var items []corev1.LimitRangeItem
		for range in.below(3) {
			item := corev1.LimitRangeItem{
				Type: []corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod, corev1.LimitTypePersistentVolumeClaim}[in.below(3)],
				Min:  in.list(0),
				Max:  in.list(8),
			}
			if in.below(3) == 1 {
				item.MaxLimitRequestRatio = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(1+in.below(4)), resource.DecimalSI)}
			}
			if item.Type == corev1.LimitTypeContainer {
				item.Default, item.DefaultRequest = in.list(4), in.list(4)
			}
			items = append(items, item)
		}
		limitRanges = append(limitRanges, limitRange(fmt.Sprintf("limits-%d", i), items...))
	}
	return limitRanges
}

func (in *input) podSpec() corev1.PodSpec {
	spec := corev1.PodSpec{Overhead: in.list(100)}
	if in.below(4) == 1 {
		spec.Resources = &corev1.ResourceRequirements{Requests: in.list(2), Limits: in.list(4)}
	}
	for i := range 1 + in.below(3) {
		spec.Containers = append(spec.Containers, container(fmt.Sprintf("c-%d", i), needs(in.list(2), in.list(4))))
	}
	for i := range in.below(4) {
		if resources := needs(in.list(2), in.list(4)); in.below(2) == 0 {
			spec.InitContainers = append(spec.InitContainers, container(fmt.Sprintf("i-%d", i), resources))
		} else {
			spec.InitContainers = append(spec.InitContainers, sidecar(fmt.Sprintf("s-%d", i), resources))
		}
	}
	return spec
}

// list makes quantities that are not far above the given number of steps, each
// resource always in the same format.
func (in *input) list(steps int) corev1.ResourceList {
	var list corev1.ResourceList
	for i, name := range resources {
		if in.below(2) == 0 {
			continue
		}
		n := int64(steps + in.below(6))
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = []resource.Quantity{
			*resource.NewMilliQuantity(n*50, resource.DecimalSI),
			*resource.NewQuantity(n<<19, resource.BinarySI),
			*resource.NewQuantity(n, resource.DecimalSI),
		}[i]
	}
	return list
}
