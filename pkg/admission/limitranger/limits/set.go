// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits computes the defaults that LimitRanges set in a Pod, and the bounds
// that the Pod violates. Package limitranger reads the LimitRanges and handles the
// requests.
//
// The rules and the texts are those of core/v1. LimitRanges apply in the order of
// their names, so the result does not depend on when they were created:
//   - A default for a resource is that of the first LimitRange that has one.
//   - Every violation of every LimitRange is reported. If there is more than one
//     LimitRange, each violation starts with the name of its LimitRange, as in
//     `LimitRange "small": maximum cpu usage per Container is 1, but limit is 2`.
//
// Only limits of the types Container and Pod apply to Pods.
package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// Set is all LimitRanges of one Namespace, prepared to be applied to many Pods. It is
// immutable, so it can be shared. The zero Set has no limits.
type Set struct {
	// The defaults for containers, sorted by resource.
	defaultRequests, defaultLimits []defaultValue

	// The bounds for each container, and for the Pod as a whole. They are sorted by
	// resource, so that a Pod is read once for any number of LimitRanges.
	perContainer, perPod []resourceBounds
	// boundCount is the sum, over all items, of the resources that an item bounds.
	boundCount int
}

// defaultValue is the default quantity of a resource.
type defaultValue struct {
	resource corev1.ResourceName
	quantity resource.Quantity
}

// resourceBounds are the bounds of one resource, in the order of the items. There is
// at least one.
type resourceBounds []bounds

func (r resourceBounds) resource() corev1.ResourceName { return r[0].resource }

// bounds are the bounds of one resource in one item of a LimitRange.
type bounds struct {
	resource           corev1.ResourceName
	item               *item
	min, max, maxRatio bound
}

// item is an item of a LimitRange.
type item struct {
	// prefix is the prefix of every violation, with the name of the LimitRange. It is
	// empty if there is only one LimitRange.
	prefix    string
	limitType corev1.LimitType
	// position is the position among the items of all LimitRanges.
	position int
}

// bound is a bound, or none if it is not given.
type bound struct{ amount }

func (b *bound) given() bool { return b.quantity != nil }

// NewSet returns the Set of the LimitRanges of one Namespace, in any order. It does
// not change them, and they must not change while the Set is in use.
func NewSet(limitRanges []*v1.LimitRange) *Set {
	byName := sortedByName(limitRanges)
	requests, limits := firstDefaults(byName)
	var perContainer, perPod []bounds
	position := 0
	for _, limitRange := range byName {
		prefix := ""
		if len(byName) > 1 {
			prefix = fmt.Sprintf("LimitRange %q: ", limitRange.Name)
		}
		for i := range limitRange.Spec.Limits {
			limits := &limitRange.Spec.Limits[i]
			item := &item{prefix, limits.Type, position}
			position++
			switch limits.Type {
			case corev1.LimitTypeContainer:
				perContainer = appendBounds(perContainer, item, limits)
			case corev1.LimitTypePod:
				perPod = appendBounds(perPod, item, limits)
			}
		}
	}
	return &Set{
		defaultRequests: sortedByResource(requests),
		defaultLimits:   sortedByResource(limits),
		perContainer:    groupedByResource(perContainer),
		perPod:          groupedByResource(perPod),
		boundCount:      len(perContainer) + len(perPod),
	}
}

func sortedByName(limitRanges []*v1.LimitRange) []*v1.LimitRange {
	return slices.SortedFunc(slices.Values(limitRanges), func(a, b *v1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
}

// firstDefaults returns the defaults that are in force: for each resource, the
// default of the first LimitRange that has one.
func firstDefaults(byName []*v1.LimitRange) (requests, limits corev1.ResourceList) {
	requests, limits = corev1.ResourceList{}, corev1.ResourceList{}
	merge := func(list, others corev1.ResourceList) {
		for name, quantity := range others {
			if _, found := list[name]; !found {
				list[name] = quantity
			}
		}
	}
	for _, limitRange := range byName {
		for i := range limitRange.Spec.Limits {
			if item := &limitRange.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
				merge(requests, item.DefaultRequest)
				merge(limits, item.Default)
			}
		}
	}
	return requests, limits
}

func sortedByResource(list corev1.ResourceList) []defaultValue {
	var sorted []defaultValue
	for _, name := range slices.Sorted(maps.Keys(list)) {
		sorted = append(sorted, defaultValue{name, list[name]})
	}
	return sorted
}

// appendBounds appends the bounds of an item.
func appendBounds(all []bounds, i *item, limits *corev1.LimitRangeItem) []bounds {
	for name := range sets.KeySet(limits.Min).Union(sets.KeySet(limits.Max)).Union(sets.KeySet(limits.MaxLimitRequestRatio)) {
		all = append(all, bounds{
			resource: name,
			item:     i,
			min:      boundOf(limits.Min, name),
			max:      boundOf(limits.Max, name),
			maxRatio: boundOf(limits.MaxLimitRequestRatio, name),
		})
	}
	return all
}

func groupedByResource(all []bounds) []resourceBounds {
	slices.SortStableFunc(all, func(a, b bounds) int { return cmp.Compare(a.resource, b.resource) })
	var groups []resourceBounds
	start := 0
	for end := 1; end <= len(all); end++ {
		if end == len(all) || all[end].resource != all[start].resource {
			groups = append(groups, all[start:end])
			start = end
		}
	}
	return groups
}

func boundOf(list corev1.ResourceList, name corev1.ResourceName) bound {
	quantity, found := list[name]
	if !found {
		return bound{}
	}
	// The first call of String changes the Quantity: it caches the text. Call it now,
	// because bounds are shared and must not change later.
	_ = quantity.String()
	return bound{amountOf(&quantity)}
}
