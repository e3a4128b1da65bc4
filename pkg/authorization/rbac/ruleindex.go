// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// smallRole is the size of the rules, as sizeOf counts it, up to which reading them in
	// turn costs less than looking them up.
	smallRole = 256
	// maxIndexed is how many combinations an index has, so that a role takes a bounded
	// multiple of its rules. Those that a user may write without the right to escalate are
	// fewer: effective rules are for at most one more group.
	maxIndexed = 2 * maxCombinations
)

// ruleIndex has the rules of a large role by what they allow, so that a decision does not
// read them all.
type ruleIndex struct {
	allowed map[right]names
	// rest are the rules for URLs, and those that have too many combinations.
	rest []rbacv1.PolicyRule
}

// right is a verb on a resource, as a rule names them. A resource has its subresource.
type right struct{ verb, group, resource string }

// names are the names of objects to which a right applies.
type names struct {
	all  bool
	some map[string]struct{}
}

// isLarge reports whether the rules are looked up in an index.
func isLarge(rules []rbacv1.PolicyRule) bool {
	size := 0
	for i := range rules {
		size += sizeOf(&rules[i])
	}
	return size > smallRole
}

func newRuleIndex(rules []rbacv1.PolicyRule) *ruleIndex {
	x := &ruleIndex{allowed: map[right]names{}}
	left := maxIndexed
	for i := range rules {
		n := combinations(rules[i : i+1])
		if len(rules[i].NonResourceURLs) > 0 || n > left {
			x.rest = append(x.rest, rules[i])
			continue
		}
		left -= n
		x.add(&rules[i])
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
					n.some = make(map[string]struct{}, len(rule.ResourceNames))
				}
				if !n.all {
					for _, name := range rule.ResourceNames {
						n.some[name] = struct{}{}
					}
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
		size += versionSize + entry*len(n.some)
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
		if n.all {
			return true
		}
		_, found := n.some[w.GetName()]
		return found
	})
}
