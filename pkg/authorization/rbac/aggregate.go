// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// aggregate computes the rules of the ClusterRoles that aggregate others. The lock is
// held.
//
// Kubernetes has a controller write these rules, and decides by what it has written.
// Here decisions follow the roles that are aggregated at once; what is written to the
// rules is for readers only (see Outdated). The result is that of the controller
// when it has finished, except that a role that aggregates no rules has none:
// the controller leaves those that users wrote.
func (x *Index) aggregate() {
	if len(x.aggregating) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(x.aggregating), compareKeys)
	for _, name := range names {
		x.roles[name].rules = nil
	}
	all := slices.SortedFunc(maps.Keys(x.roles), compareKeys)
	all = slices.DeleteFunc(all, func(key objectKey) bool { return key.namespace != "" })
	// A role may aggregate roles that aggregate, also in a cycle. Each round carries
	// rules one role further.
	for range names {
		grown := false
		for _, name := range names {
			rules := x.aggregated(name, all)
			grown = grown || len(rules) != len(x.roles[name].rules)
			x.roles[name].rules = rules
		}
		if !grown {
			break
		}
	}
}

// aggregated returns the rules of the roles that the role selects: by selector, then by
// name, each rule once.
func (x *Index) aggregated(name objectKey, all []objectKey) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, selector := range x.roles[name].selectors {
		for _, other := range all {
			if other != name && selector.Matches(x.roles[other].labels) {
				rules = append(rules, x.roles[other].rules...)
			}
		}
	}
	return unique(rules)
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// Aggregated is a ClusterRole and the rules that it aggregates.
type Aggregated struct {
	Name  string
	UID   types.UID
	Rules []rbacv1.PolicyRule
}

// Outdated returns the ClusterRoles whose stored rules differ from those that they
// aggregate.
func (x *Index) Outdated() []Aggregated {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var outdated []Aggregated
	for key := range x.aggregating {
		if r := x.roles[key]; !equality.Semantic.DeepEqual(r.rules, r.stored) {
			outdated = append(outdated, Aggregated{key.name, r.uid, r.rules})
		}
	}
	return outdated
}

// affectsAggregation reports whether a change of a ClusterRole can change the rules of
// those that aggregate. The lock is held.
func (x *Index) affectsAggregation(old, updated *role) bool {
	for _, r := range []*role{old, updated} {
		if r == nil {
			continue
		}
		if r.selectors != nil {
			return true
		}
		for _, aggregating := range x.aggregating {
			if slices.ContainsFunc(aggregating.selectors, func(s labels.Selector) bool { return s.Matches(r.labels) }) {
				return true
			}
		}
	}
	return false
}
