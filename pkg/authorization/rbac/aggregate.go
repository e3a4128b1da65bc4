// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
)

// aggregate computes the rules of the ClusterRoles that aggregate others, and returns
// those whose rules have changed.
//
// Kubernetes has a controller write these rules, and decides by what it has written.
// Here decisions follow the roles that are aggregated at once; what is written to the
// rules is for readers only (see Outdated). The result is that of the controller
// when it has finished, except that a role that aggregates no rules has none:
// the controller leaves those that users wrote.
func (p *policy) aggregate(position int64) []objectKey {
	if len(p.aggregating) == 0 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(p.aggregating), compareKeys)
	var all []objectKey
	rules := map[objectKey][]rbacv1.PolicyRule{}
	for key, n := range p.roles {
		if r := n.last; key.namespace == "" && r != nil && r.At(latest) {
			all = append(all, key)
			if r.selectors == nil {
				rules[key] = r.rules
			}
		}
	}
	slices.SortFunc(all, compareKeys)
	// A role may aggregate roles that aggregate, also in a cycle. Each round carries
	// rules one role further.
	for range names {
		grown := false
		for _, name := range names {
			aggregated := p.aggregated(name, all, rules)
			grown = grown || len(aggregated) != len(rules[name])
			rules[name] = aggregated
		}
		if !grown {
			break
		}
	}
	return slices.DeleteFunc(names, func(name objectKey) bool { return !p.setAggregated(position, name, rules[name]) })
}

// aggregated returns the rules of the roles that the role selects: by selector, then by
// name, each rule once.
func (p *policy) aggregated(name objectKey, all []objectKey, rules map[objectKey][]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var found []rbacv1.PolicyRule
	for _, selector := range p.roles[name].last.selectors {
		for _, other := range all {
			if other != name && selector.Matches(p.roles[other].last.labels) {
				found = append(found, rules[other]...)
			}
		}
	}
	return unique(found)
}

// setAggregated sets the rules of a role that aggregates from a position on, and
// reports whether they have changed.
func (p *policy) setAggregated(position int64, name objectKey, rules []rbacv1.PolicyRule) bool {
	r := p.roles[name].last
	if equality.Semantic.DeepEqual(r.rules, rules) {
		return false
	}
	if r.From == position { // it was set by the same change
		p.setRules(name, r, rules)
		return true
	}
	updated := *r
	updated.rules = rules
	p.setRole(position, name, &updated)
	return true
}

// Aggregated is a ClusterRole and the rules that it aggregates.
type Aggregated struct {
	Name  string
	Rules []rbacv1.PolicyRule
}

// Outdated returns the ClusterRoles whose stored rules differ from those that they
// aggregate.
func (x *Index) Outdated() []Aggregated {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var outdated []Aggregated
	for key := range x.policy.aggregating {
		if r := x.policy.roles[key].last; !equality.Semantic.DeepEqual(r.rules, r.stored) {
			outdated = append(outdated, Aggregated{key.name, r.rules})
		}
	}
	return outdated
}

// affectsAggregation reports whether a change of a ClusterRole can change the rules of
// those that aggregate.
func (p *policy) affectsAggregation(old, updated *role) bool {
	for _, r := range []*role{old, updated} {
		if r == nil {
			continue
		}
		if r.selectors != nil {
			return true
		}
		for name := range p.aggregating {
			if slices.ContainsFunc(p.roles[name].last.selectors, func(s labels.Selector) bool { return s.Matches(r.labels) }) {
				return true
			}
		}
	}
	return false
}
