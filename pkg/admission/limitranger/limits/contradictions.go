// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// Contradictions says where a LimitRange and others of its Namespace can't be met
// together: where no value, or none that is given by default, is within the bounds
// of both. Each text names both LimitRanges, as in
//
//	LimitRanges "a" and "b" contradict each other: min cpu per Container is 2 in "b", but max cpu per Container is 1 in "a"
//
// Among the others may be an earlier version of the LimitRange, which is ignored.
func Contradictions(limitRange *v1.LimitRange, others []*v1.LimitRange) []string {
	all := []*v1.LimitRange{limitRange}
	for _, other := range others {
		if other.Name != limitRange.Name {
			all = append(all, other)
		}
	}
	inForce := sync.OnceValue(func() *Set { return NewSet(all) })

	var found []string
	for _, other := range all[1:] {
		p := pair{limitRange, other, inForce}
		if p.a.Name > p.b.Name {
			p.a, p.b = p.b, p.a
		}
		found = append(found, p.contradictions()...)
	}
	return found
}

// pair is two LimitRanges in order of their names, and what is in force in their
// Namespace.
type pair struct {
	a, b    *v1.LimitRange
	inForce func() *Set
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

// rules say which field must not be greater than which of another LimitRange.
// Those that entail others come before them.
var rules = []struct{ lesser, greater field }{
	{lowest, highest},
	{defaultLimit, highest},
	{lowest, defaultLimit},
	{defaultRequest, defaultLimit},
	{defaultRequest, highest},
	{lowest, defaultRequest},
}

// part is one of the items of a LimitRange.
type part struct {
	*corev1.LimitRangeItem
	owner string
}

func (p *pair) contradictions() []string {
	var found []string
	for i := range p.a.Spec.Limits {
		for j := range p.b.Spec.Limits {
			a, b := part{&p.a.Spec.Limits[i], p.a.Name}, part{&p.b.Spec.Limits[j], p.b.Name}
			found = slices.Concat(found, p.compare(a, b), p.compare(b, a), p.compareRatio(a, b), p.compareRatio(b, a))
		}
	}
	slices.Sort(found)
	return found
}

// compare returns where a is not the lesser of the two: for each resource the
// first rule that is broken.
func (p *pair) compare(a, b part) []string {
	var found []string
	var seen []corev1.ResourceName
	for _, rule := range rules {
		// A Pod needs no less than each of its containers.
		applies := a.Type == b.Type || a.Type == corev1.LimitTypeContainer && b.Type == corev1.LimitTypePod && rule.greater.name == highest.name
		if !applies {
			continue
		}
		for name, value := range rule.lesser.of(a.LimitRangeItem) {
			bound, bounded := rule.greater.of(b.LimitRangeItem)[name]
			if !bounded || value.Cmp(bound) <= 0 || slices.Contains(seen, name) ||
				!p.counts(a, rule.lesser, rule.greater, name, value) || !p.counts(b, rule.greater, rule.lesser, name, bound) {
				continue
			}
			seen = append(seen, name)
			found = append(found, p.describe(
				fmt.Sprintf("%s %s per %s is %s in %q", rule.lesser.name, name, a.Type, value.String(), a.owner),
				fmt.Sprintf("%s %s per %s is %s in %q", rule.greater.name, name, b.Type, bound.String(), b.owner)))
		}
	}
	return found
}

// compareRatio returns where the defaults of a are further apart than b allows.
func (p *pair) compareRatio(a, b part) []string {
	if a.Type != b.Type {
		return nil
	}
	var found []string
	for name, quantity := range b.MaxLimitRequestRatio {
		var given usage
		given.read(&corev1.ResourceRequirements{Requests: a.DefaultRequest, Limits: a.Default}, name)
		request, limit := &given.request, &given.limit
		if !limit.found || !request.found ||
			!p.counts(a, defaultLimit, defaultRequest, name, limit.quantity) || !p.counts(a, defaultRequest, defaultLimit, name, request.quantity) {
			continue
		}
		bound := boundOf(b.MaxLimitRequestRatio, name)
		if bound.exceededBy(&given, request.amount(), limit.amount()) != "" {
			found = append(found, p.describe(
				fmt.Sprintf("default and defaultRequest %s per %s are %s and %s in %q", name, a.Type, limit.quantity.String(), request.quantity.String(), a.owner),
				fmt.Sprintf("maxLimitRequestRatio %s per %s is %s in %q", name, b.Type, quantity.String(), b.owner)))
		}
	}
	return found
}

func (p *pair) describe(one, other string) string {
	return fmt.Sprintf("LimitRanges %q and %q contradict each other: %s, but %s", p.a.Name, p.b.Name, one, other)
}

// counts says whether a value is worth a warning. That of a bound always is. A
// default is if it comes first in the Namespace, so that Pods get it. Another may
// be too, as somebody meant it, unless it is against a default itself, or is just
// what decoding has made of a bound of its item: otherwise LimitRanges that differ
// in a bound would always contradict each other.
func (p *pair) counts(i part, f, other field, name corev1.ResourceName, value resource.Quantity) bool {
	if !f.isDefault {
		return true
	}
	if i.Type != corev1.LimitTypeContainer {
		return false // means nothing to others
	}
	inForce, origins := p.inForce().defaultLimits, []corev1.ResourceList{i.Max}
	if f.name == defaultRequest.name {
		inForce, origins = p.inForce().defaultRequests, []corev1.ResourceList{i.Default, i.Min}
	}
	comesFirst := slices.ContainsFunc(inForce, func(d defaultValue) bool { return d.resource == name && d.quantity.Cmp(value) == 0 })
	return comesFirst || !other.isDefault && !slices.ContainsFunc(origins, func(origin corev1.ResourceList) bool {
		quantity, found := origin[name]
		return found && quantity.Cmp(value) == 0
	})
}
