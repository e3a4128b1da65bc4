// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// WithOtherGroup returns rules that allow on the shared resources of both groups what the
// rules allow on those of one.
func WithOtherGroup(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	all := slices.Clip(rules) // append must not write to the caller's
	for i := range rules {
		rule := &rules[i]
		own, core := slices.Contains(rule.APIGroups, tenancy.GroupName), slices.Contains(rule.APIGroups, GroupName)
		if own == core || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) {
			continue
		}
		resources := sharedResources(rule.Resources)
		if len(resources) == 0 {
			continue
		}
		other := GroupName
		if core {
			other = tenancy.GroupName
		}
		all = append(all, rbacv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: []string{other}, Resources: resources, ResourceNames: rule.ResourceNames,
		})
	}
	return all
}

// sharedResources returns the shared resources among those of a rule.
func sharedResources(list []string) []string {
	if slices.Contains(list, rbacv1.ResourceAll) {
		return Resources()
	}
	var shared []string
	for _, resource := range list {
		subresource, ofAll := strings.CutPrefix(resource, "*/")
		switch {
		case ofAll:
			for _, r := range Resources() {
				if strings.HasSuffix(r, "/"+subresource) {
					shared = append(shared, r)
				}
			}
		case Shared(resource):
			shared = append(shared, resource)
		}
	}
	return shared
}
