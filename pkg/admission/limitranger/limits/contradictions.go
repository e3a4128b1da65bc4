// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// maxContradictions is the maximum number of reported contradictions. A response has
// room for fewer warnings.
const maxContradictions = 50

// Contradictions returns the contradictions between a LimitRange and others in its
// Namespace: bounds that no value, or no default value, can satisfy in both. Each
// text contains the names of both LimitRanges, as in
//
//	LimitRanges "a" and "b" contradict each other: min cpu per Container is 2 in "b", but max cpu per Container is 1 in "a"
//
// The others may include an earlier version of the LimitRange, which is ignored.
// Contradictions returns the first 50, or those that it has found when the context
// ends. The time is linear in the size of the LimitRanges if none has two items of
// the same type.
func Contradictions(ctx context.Context, limitRange *v1.LimitRange, others []*v1.LimitRange) []string {
	others = slices.DeleteFunc(slices.Clone(others), func(other *v1.LimitRange) bool { return other.Name == limitRange.Name })
	inForce := sync.OnceValues(func() (requests, limits corev1.ResourceList) {
		return firstDefaults(sortedByName(append(slices.Clone(others), limitRange)))
	})
	byType := map[corev1.LimitType][]part{}
	for i := range limitRange.Spec.Limits {
		item := &limitRange.Spec.Limits[i]
		byType[item.Type] = append(byType[item.Type], part{item, limitRange.Name})
	}

	var found []string
	for _, other := range others {
		c := comparison{
			ctx: ctx, one: min(limitRange.Name, other.Name), other: max(limitRange.Name, other.Name), inForce: inForce,
			found: firsts[string]{max: maxContradictions - len(found), compare: strings.Compare},
		}
		c.compareAll(byType, other)
		found = append(found, c.found.kept...)
		if len(found) == maxContradictions || ctx.Err() != nil {
			break
		}
	}
	return found
}

// comparison compares two LimitRanges, in the order of their names.
type comparison struct {
	ctx        context.Context
	one, other string
	// inForce returns the defaults in force in the Namespace.
	inForce func() (requests, limits corev1.ResourceList)
	found   firsts[string]
}

// field is a field of the items of a LimitRange.
type field struct {
	name      string
	isDefault bool
	of        func(*corev1.LimitRangeItem) corev1.ResourceList
}

var (
	lowest         = field{"min", false, func(i *corev1.LimitRangeItem) corev1.ResourceList { return i.Min }}
	highest        = field{"max", false, func(i *corev1.LimitRangeItem) corev1.ResourceList { return i.Max }}
	defaultRequest = field{"defaultRequest", true, func(i *corev1.LimitRangeItem) corev1.ResourceList { return i.DefaultRequest }}
	defaultLimit   = field{"default", true, func(i *corev1.LimitRangeItem) corev1.ResourceList { return i.Default }}
)

// rule requires that a field is not greater than a field of another LimitRange.
type rule struct{ lesser, greater field }

var (
	// rules apply to parts of the same type. Rules that imply others are first.
	rules = []rule{
		{lowest, highest},
		{defaultLimit, highest},
		{lowest, defaultLimit},
		{defaultRequest, defaultLimit},
		{defaultRequest, highest},
		{lowest, defaultRequest},
	}
	// rulesOfPod compare a container with its Pod, which uses at least as much.
	rulesOfPod = []rule{
		{lowest, highest},
		{defaultLimit, highest},
		{defaultRequest, highest},
	}
)

// part is an item of a LimitRange, with the name of the LimitRange.
type part struct {
	*corev1.LimitRangeItem
	owner string
}

// compareAll compares the parts of one LimitRange with the parts of another that they
// may contradict: those of the same type, and those of containers with those of Pods.
func (c *comparison) compareAll(byType map[corev1.LimitType][]part, other *v1.LimitRange) {
	for i := range other.Spec.Limits {
		b := part{&other.Spec.Limits[i], other.Name}
		for _, a := range byType[b.Type] {
			if c.ctx.Err() != nil {
				return
			}
			c.compare(a, b, rules)
			c.compare(b, a, rules)
			c.compareRatio(a, b)
			c.compareRatio(b, a)
		}
		switch b.Type {
		case corev1.LimitTypeContainer:
			for _, a := range byType[corev1.LimitTypePod] {
				c.compare(b, a, rulesOfPod)
			}
		case corev1.LimitTypePod:
			for _, a := range byType[corev1.LimitTypeContainer] {
				c.compare(a, b, rulesOfPod)
			}
		}
	}
}

// compare adds a contradiction for each resource, with the first rule that a, as the
// lesser part, and b, as the greater, violate.
func (c *comparison) compare(a, b part, rules []rule) {
	seen := sets.New[corev1.ResourceName]()
	for _, rule := range rules {
		lesser, greater := rule.lesser.of(a.LimitRangeItem), rule.greater.of(b.LimitRangeItem)
		for name := range common(lesser, greater) {
			value, bound := lesser[name], greater[name]
			if value.Cmp(bound) <= 0 || seen.Has(name) ||
				!c.counts(a, rule.lesser, rule.greater, name, value) || !c.counts(b, rule.greater, rule.lesser, name, bound) {
				continue
			}
			seen.Insert(name)
			c.add(
				fmt.Sprintf("%s %s per %s is %s in %q", rule.lesser.name, name, a.Type, value.String(), a.owner),
				fmt.Sprintf("%s %s per %s is %s in %q", rule.greater.name, name, b.Type, bound.String(), b.owner))
		}
	}
}

// compareRatio adds a contradiction for each resource where the ratio of the defaults
// of a is above the maximum ratio of b.
func (c *comparison) compareRatio(a, b part) {
	for name := range common(a.Default, b.MaxLimitRequestRatio) {
		var given usage
		given.read(&corev1.ResourceRequirements{Requests: a.DefaultRequest, Limits: a.Default}, name)
		request, limit := &given.request, &given.limit
		if !request.found ||
			!c.counts(a, defaultLimit, defaultRequest, name, limit.quantity) || !c.counts(a, defaultRequest, defaultLimit, name, request.quantity) {
			continue
		}
		bound := boundOf(b.MaxLimitRequestRatio, name)
		requested, limited := request.amount(), limit.amount()
		if bound.exceededBy(&given, &requested, &limited) != none {
			c.add(
				fmt.Sprintf("default and defaultRequest %s per %s are %s and %s in %q", name, a.Type, limit.quantity.String(), request.quantity.String(), a.owner),
				fmt.Sprintf("maxLimitRequestRatio %s per %s is %s in %q", name, b.Type, bound.quantity.String(), b.owner))
		}
	}
}

// common yields the resources that are in both lists, in time linear in the length of
// the shorter list.
func common(a, b corev1.ResourceList) iter.Seq[corev1.ResourceName] {
	if len(a) > len(b) {
		a, b = b, a
	}
	return func(yield func(corev1.ResourceName) bool) {
		for name := range a {
			if _, found := b[name]; found && !yield(name) {
				return
			}
		}
	}
}

func (c *comparison) add(one, other string) {
	c.found.add(fmt.Sprintf("LimitRanges %q and %q contradict each other: %s, but %s", c.one, c.other, one, other))
}

// counts reports whether a contradiction with the value is worth a warning. A bound
// always is. A default is if it is the first in the Namespace, which Pods get. Another
// default is only if it contradicts a bound, and differs from the fields of its item
// that decoding may have copied it from: otherwise any two LimitRanges with different
// bounds would contradict each other.
func (c *comparison) counts(i part, f, other field, name corev1.ResourceName, value resource.Quantity) bool {
	if !f.isDefault {
		return true
	}
	if i.Type != corev1.LimitTypeContainer {
		return false // defaults apply only to containers
	}
	requests, limits := c.inForce()
	inForce, origins := limits, []corev1.ResourceList{i.Max}
	if f.name == defaultRequest.name {
		inForce, origins = requests, []corev1.ResourceList{i.Default, i.Min}
	}
	first, found := inForce[name]
	comesFirst := found && first.Cmp(value) == 0
	return comesFirst || !other.isDefault && !slices.ContainsFunc(origins, func(origin corev1.ResourceList) bool {
		quantity, found := origin[name]
		return found && quantity.Cmp(value) == 0
	})
}
