// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelled sets labels, each "true".
func labelled(role *rbacv1.ClusterRole, labels ...string) *rbacv1.ClusterRole {
	role.Labels = map[string]string{}
	for _, l := range labels {
		role.Labels[l] = "true"
	}
	return role
}

// aggregating returns a role that aggregates the roles with the labels.
func aggregating(name string, labels ...string) *rbacv1.ClusterRole {
	role := newClusterRole(name)
	role.AggregationRule = &rbacv1.AggregationRule{}
	for _, l := range labels {
		role.AggregationRule.ClusterRoleSelectors = append(role.AggregationRule.ClusterRoleSelectors, metav1.LabelSelector{MatchLabels: map[string]string{l: "true"}})
	}
	return role
}

// rulesOf returns the verbs of the rules of a ClusterRole.
func rulesOf(x *Index, name string) string { return rulesAt(x, name, latest) }

// rulesAt returns those that it had at a position.
func rulesAt(x *Index, name string, position int64) string {
	var verbs []string
	for _, r := range x.policy.at(x.policy.roles[objectKey{name: name}], position).rules {
		verbs = append(verbs, strings.Join(r.Verbs, ","))
	}
	return strings.Join(verbs, " ")
}

func TestAggregation(t *testing.T) {
	stale := aggregating("view", "to-view")
	stale.Rules = []rbacv1.PolicyRule{rule("forgotten core pods")}
	x := newIndex(t,
		aggregating("admin", "to-admin"),
		labelled(aggregating("edit", "to-edit"), "to-admin"),
		labelled(stale, "to-edit"),
		labelled(newClusterRole("v2", "get core pods", "list core pods"), "to-view"),
		labelled(newClusterRole("v1", "list core pods"), "to-view"),
		labelled(newClusterRole("e", "update core pods"), "to-edit"),
		newClusterRole("other", "delete core pods"),
		// A cycle, of which one role aggregates itself.
		labelled(aggregating("x", "to-x", "to-all"), "to-y", "to-x"),
		labelled(aggregating("y", "to-y"), "to-x"),
		labelled(newClusterRole("leaf", "watch core pods"), "to-y"),
		aggregating("empty", "to-empty"),
	)
	check := func(when string, want map[string]string) {
		t.Helper()
		for name, rules := range want {
			if got := rulesOf(x, name); got != rules {
				t.Errorf("%s: %s has the rules %q, want %q", when, name, got, rules)
			}
		}
	}
	check("at first", map[string]string{
		"view": "list get", "edit": "update list get", "admin": "update list get", "x": "watch", "y": "watch", "empty": "",
	})
	outdated := map[string]bool{}
	for _, role := range x.Outdated() {
		outdated[role.Name] = true
	}
	if fmt.Sprint(outdated) != "map[admin:true edit:true view:true x:true y:true]" {
		t.Errorf("outdated: %v", outdated)
	}

	change(x, 2, labelled(newClusterRole("v2", "get core pods"), "to-view"), false)
	change(x, 3, labelled(newClusterRole("other", "delete core pods"), "to-edit"), false)
	check("after changes", map[string]string{"view": "list get", "edit": "update delete list get", "admin": "update delete list get"})
	change(x, 4, newClusterRole("v1"), true)
	check("after a deletion", map[string]string{"view": "get", "admin": "update delete get"})
	change(x, 5, labelled(newClusterRole("leaf", "watch core pods")), false)
	check("without a label", map[string]string{"x": "", "y": ""})
	change(x, 6, aggregating("edit", "to-view"), false) // no longer aggregated itself
	check("after another rule", map[string]string{"edit": "get", "admin": ""})
	written := aggregating("edit", "to-view")
	written.Rules = []rbacv1.PolicyRule{rule("get core pods")}
	change(x, 7, written, false)
	for _, role := range x.Outdated() {
		if role.Name == "edit" {
			t.Error("edit is outdated after its rules were written")
		}
	}
	plain := newClusterRole("edit", "create core pods")
	change(x, 8, plain, false)
	check("without a rule", map[string]string{"edit": "create"})
}

// TestAggregatesClusterRolesOnly checks that a role with a selector of everything has no rules
// of Roles, which users of a Namespace may write.
func TestAggregatesClusterRolesOnly(t *testing.T) {
	all := aggregating("all")
	all.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{{}}
	x := newIndex(t, all, newClusterRole("c", "get core pods"), newRole("a", "r", "delete core pods"))
	if got := rulesOf(x, "all"); got != "get" {
		t.Errorf("at first: %q", got)
	}
	change(x, 2, newRole("a", "r2", "update core pods"), false)
	change(x, 3, newClusterRole("c", "list core pods"), false)
	if got := rulesOf(x, "all"); got != "list" {
		t.Errorf("after changes: %q", got)
	}
}

// TestAggregationWithHistory checks the rules at positions before the last, also of roles that
// have ended.
func TestAggregationWithHistory(t *testing.T) {
	x := newIndex(t, aggregating("all", "to-all"), labelled(newClusterRole("a", "get core pods"), "to-all"))
	apply := func(position int64, changes ...Change) { x.Apply(position, changes) }
	apply(2, changeOf(labelled(newClusterRole("b", "list core pods"), "to-all"), false))
	apply(3, changeOf(newClusterRole("a"), true))
	// Both change it.
	apply(4, changeOf(aggregating("all", "to-all", "to-more"), false), changeOf(labelled(newClusterRole("c", "watch core pods"), "to-more"), false))
	for position, want := range map[int64]string{1: "get", 2: "get list", 3: "list", 4: "list watch", latest: "list watch"} {
		if got := rulesAt(x, "all", position); got != want {
			t.Errorf("at %d: %q, want %q", position, got, want)
		}
	}
}
