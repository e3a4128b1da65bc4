// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// uncovered returns the combinations of verbs, groups, resources and names in the rules
// that none of the rules that are held covers. It returns what validation.Covers does,
// but reads the lists of a rule that is held once, not for each combination, and has the
// sets of one such rule at a time: a user may hold thousands.
func uncovered(ctx context.Context, held, rules []rbacv1.PolicyRule) (missing []rbacv1.PolicyRule, err error) {
	for i := range rules {
		missing = append(missing, validation.BreakdownRule(rules[i])...)
	}
	for i := range held {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			break
		}
		sets := newRuleSets(&held[i])
		missing = slices.DeleteFunc(missing, func(right rbacv1.PolicyRule) bool { return sets.cover(&right) })
	}
	return missing, nil
}

// ruleSets are the lists of a rule.
type ruleSets struct {
	verbs, groups, resources, names sets.Set[string]
	urls                            []string // with patterns, which are compared in turn
}

func newRuleSets(r *rbacv1.PolicyRule) ruleSets {
	return ruleSets{sets.New(r.Verbs...), sets.New(r.APIGroups...), sets.New(r.Resources...), sets.New(r.ResourceNames...), r.NonResourceURLs}
}

// cover reports whether the rule covers a right with one verb, and one resource of one
// group and at most one name, or one URL.
func (r *ruleSets) cover(right *rbacv1.PolicyRule) bool {
	if !r.verbs.HasAny(rbacv1.VerbAll, right.Verbs[0]) {
		return false
	}
	if len(right.NonResourceURLs) > 0 {
		return len(r.names) == 0 && slices.ContainsFunc(r.urls, func(url string) bool { return matchesPath(url, right.NonResourceURLs[0]) })
	}
	if !r.groups.HasAny(rbacv1.APIGroupAll, right.APIGroups[0]) {
		return false
	}
	if len(r.names) > 0 && (len(right.ResourceNames) == 0 || !r.names.Has(right.ResourceNames[0])) {
		return false
	}
	resource := right.Resources[0]
	_, subresource, found := strings.Cut(resource, "/")
	return r.resources.HasAny(rbacv1.ResourceAll, resource) || found && r.resources.Has("*/"+subresource)
}
