// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits is the arithmetic of LimitRanges: what defaults they give to a
// Pod, and which of their bounds it violates. It reads no cache and serves no
// request; package limitranger does.
//
// The rules and the texts are those of core/v1. LimitRanges apply in order of
// their names, so the outcome does not depend on when each was created:
//   - The first that has a default for a resource gives it.
//   - Every violation of every LimitRange is reported. When there is more than
//     one LimitRange each violation starts with the name of its own, as in
//     `LimitRange "small": maximum cpu usage per Container is 1, but limit is 2`.
//
// Limits of the types Container and Pod apply to Pods, all others do not.
package limits

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// Set is all LimitRanges of one Namespace, prepared once to be applied to many
// Pods. It does not change, so it can be shared. The zero Set limits nothing.
type Set struct {
	// What is set in a container that lacks it, sorted by resource.
	defaultRequests, defaultLimits []defaultValue

	// What is checked of each container, and of a Pod as a whole. It is by
	// resource, so that a Pod is read once, however many LimitRanges there are.
	perContainer, perPod []resourceBounds
}

// defaultValue is the quantity of a resource to fill in.
type defaultValue struct {
	resource corev1.ResourceName
	quantity resource.Quantity
}

// resourceBounds is all that bounds one resource.
type resourceBounds struct {
	resource corev1.ResourceName
	bounds   []bounds
}

// bounds is what one item of a LimitRange says of one resource.
type bounds struct {
	item               *item
	min, max, maxRatio bound
}

// item is an item of a LimitRange.
type item struct {
	// prefix names the LimitRange in every report, or is empty.
	prefix    string
	limitType corev1.LimitType
	// position is that among the items of all LimitRanges.
	position int
}

// bound is a quantity with its text: a Quantity caches that when asked for it,
// which is a write, and bounds are shared. Without a text it is no bound.
type bound struct {
	amount
	text string
}

func (b *bound) given() bool { return b.text != "" }

// NewSet prepares the LimitRanges of one Namespace. Their order does not matter.
// They are not changed, and must not change as long as the Set is in use.
func NewSet(limitRanges []*v1.LimitRange) *Set {
	byName := slices.Clone(limitRanges)
	slices.SortFunc(byName, func(a, b *v1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })

	set := &Set{}
	position := 0
	for _, limitRange := range byName {
		prefix := ""
		if len(byName) > 1 {
			prefix = fmt.Sprintf("LimitRange %q: ", limitRange.Name)
		}
		for i := range limitRange.Spec.Limits {
			limits := &limitRange.Spec.Limits[i]
			set.add(&item{prefix, limits.Type, position}, limits)
			position++
		}
	}
	return set
}

func (s *Set) add(i *item, limits *corev1.LimitRangeItem) {
	switch i.limitType {
	case corev1.LimitTypeContainer:
		s.defaultRequests = merge(s.defaultRequests, limits.DefaultRequest)
		s.defaultLimits = merge(s.defaultLimits, limits.Default)
		s.perContainer = addBounds(s.perContainer, i, limits)
	case corev1.LimitTypePod:
		s.perPod = addBounds(s.perPod, i, limits)
	}
}

// addBounds adds what an item bounds; all stays sorted by resource.
func addBounds(all []resourceBounds, i *item, limits *corev1.LimitRangeItem) []resourceBounds {
	for name := range sets.KeySet(limits.Min).Union(sets.KeySet(limits.Max)).Union(sets.KeySet(limits.MaxLimitRequestRatio)) {
		at, found := slices.BinarySearchFunc(all, name, func(r resourceBounds, name corev1.ResourceName) int {
			return cmp.Compare(r.resource, name)
		})
		if !found {
			all = slices.Insert(all, at, resourceBounds{resource: name})
		}
		all[at].bounds = append(all[at].bounds, bounds{
			item:     i,
			min:      boundOf(limits.Min, name),
			max:      boundOf(limits.Max, name),
			maxRatio: boundOf(limits.MaxLimitRequestRatio, name),
		})
	}
	return all
}

// merge adds the defaults of resources that have none yet.
func merge(defaults []defaultValue, list corev1.ResourceList) []defaultValue {
	for name, quantity := range list {
		i, found := slices.BinarySearchFunc(defaults, name, func(d defaultValue, name corev1.ResourceName) int {
			return cmp.Compare(d.resource, name)
		})
		if !found {
			defaults = slices.Insert(defaults, i, defaultValue{name, quantity})
		}
	}
	return defaults
}

func boundOf(list corev1.ResourceList, name corev1.ResourceName) bound {
	quantity, found := list[name]
	if !found {
		return bound{}
	}
	return bound{amount: amountOf(quantity), text: quantity.String()}
}

// amount is a quantity as the integers in which quantities are compared, each
// rounded up.
type amount struct {
	// units is saturated at the bounds of an int64.
	units int64
	// milli is valid only if fits.
	milli int64
	fits  bool
}

func amountOf(quantity resource.Quantity) amount {
	units := quantity.Value()
	if units > resource.MaxMilliValue {
		return amount{units: units}
	}
	return amount{units: units, milli: quantity.MilliValue(), fits: true}
}
