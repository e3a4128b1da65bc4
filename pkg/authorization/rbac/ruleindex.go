// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// briefRole and smallRole are the sizes of rules, as sizeOf counts them, up to which a
	// role is brief, and up to which reading its rules in turn costs less than an index.
	briefRole = 16
	smallRole = 256
	// maxFactor is how many combinations a rule in an index may have for each of its strings,
	// so that the index takes a bounded multiple of the rules.
	maxFactor = 4
)

// ruleIndex has the rules of a large role by what they allow, so that a decision does not
// read them all.
type ruleIndex struct {
	allowed map[right]names
	// rest are the rules for URLs, and those that have too many combinations. A user without
	// the right to escalate can write few of these, because the combinations are bounded.
	rest []rbacv1.PolicyRule
}

// right is a verb on a resource, as a rule names them. A resource has its subresource.
type right struct{ verb, group, resource string }

// names are the names of objects to which a right applies.
type names struct {
	all  bool
	some sets.Set[string]
}

func newRuleIndex(rules []rbacv1.PolicyRule) *ruleIndex {
	x := &ruleIndex{allowed: map[right]names{}}
	for i := range rules {
		rule := &rules[i]
		if len(rule.NonResourceURLs) > 0 || combinations(rules[i:i+1]) > maxFactor*sizeOf(rule) {
			x.rest = append(x.rest, *rule)
		} else {
			x.add(rule)
		}
	}
	return x
}

func (x *ruleIndex) add(rule *rbacv1.PolicyRule) {
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				key := right{verb, group, resource}
				n := x.allowed[key]
				switch {
				case n.all:
					continue
				case len(rule.ResourceNames) == 0:
					n = names{all: true}
				case n.some == nil:
					n.some = make(sets.Set[string], len(rule.ResourceNames))
				}
				if !n.all {
					n.some.Insert(rule.ResourceNames...)
				}
				x.allowed[key] = n
			}
		}
	}
}

// size returns about how much memory the index takes.
func (x *ruleIndex) size() int {
	const entry = 2 * stringSize
	size := ruleSize * len(x.rest)
	for _, n := range x.allowed {
		size += ruleSize + entry*len(n.some)
	}
	return size
}

// wanted is a request for a decision.
type wanted struct {
	authorizer.Attributes
	// rights are those of which each suffices, once an index has needed them.
	rights []right
}

// lookup returns the rights of which each suffices for a request of a resource.
func (w *wanted) lookup() []right {
	if w.rights != nil {
		return w.rights
	}
	resources := []string{rbacv1.ResourceAll, w.GetResource()}
	if subresource := w.GetSubresource(); subresource != "" {
		resources = []string{rbacv1.ResourceAll, w.GetResource() + "/" + subresource, "*/" + subresource}
	}
	for _, verb := range []string{w.GetVerb(), rbacv1.VerbAll} {
		for _, group := range []string{w.GetAPIGroup(), rbacv1.APIGroupAll} {
			for _, resource := range resources {
				w.rights = append(w.rights, right{verb, group, resource})
			}
		}
	}
	return w.rights
}

// allows reports whether the effective rules of a role allow a request.
func (r *role) allows(w *wanted) bool {
	rules := r.effective
	if r.index != nil {
		if w.IsResourceRequest() && r.index.allows(w) {
			return true
		}
		rules = r.index.rest
	}
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return ruleAllows(&rule, w) })
}

func (x *ruleIndex) allows(w *wanted) bool {
	return slices.ContainsFunc(w.lookup(), func(key right) bool {
		n := x.allowed[key]
		return n.all || n.some.Has(w.GetName())
	})
}
