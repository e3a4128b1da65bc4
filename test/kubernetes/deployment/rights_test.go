// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/poll"
)

// role is a Role, or a ClusterRole if it has no namespace.
type role struct{ namespace, name string }

// grant is a right of a user from a role: one verb on one resource.
type grant struct {
	role                  role
	user                  string
	verb, group, resource string
	name                  string // resourceName, or empty
}

func (g grant) String() string {
	object := g.resource
	if g.group != "" {
		object += "." + g.group
	}
	if g.name != "" {
		object += " " + g.name
	}
	return fmt.Sprintf("%s %s (%s, for %s)", g.verb, object, g.role.name, g.user)
}

// rule returns a rule with only this grant.
func (g grant) rule() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: []string{g.resource}, Verbs: []string{g.verb}}
	if g.name != "" {
		rule.ResourceNames = []string{g.name}
	}
	return rule
}

// grants returns all grants in the applied manifests: to the service accounts
// by their bindings, and to tenants.
func (s *site) grants(t *testing.T) []grant {
	t.Helper()
	ctx, rbac := t.Context(), s.client.RbacV1()
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=borough"}
	all := append(s.grantsOf(t, viewer, role{name: "borough-view"}), s.grantsOf(t, editor, role{name: "borough-edit"})...)
	bound := func(namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if ref.Kind == "ClusterRole" {
			namespace = ""
		}
		for _, subject := range subjects {
			user := "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
			all = append(all, s.grantsOf(t, user, role{namespace, ref.Name})...)
		}
	}
	clusterWide, err := rbac.ClusterRoleBindings().List(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range clusterWide.Items {
		bound("", b.RoleRef, b.Subjects)
	}
	namespaced, err := rbac.RoleBindings(metav1.NamespaceAll).List(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range namespaced.Items {
		bound(b.Namespace, b.RoleRef, b.Subjects)
	}
	return all
}

func (s *site) grantsOf(t *testing.T, user string, r role) []grant {
	t.Helper()
	var grants []grant
	for _, rule := range s.rules(t, r, nil) {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						grants = append(grants, grant{r, user, verb, group, resource, name})
					}
				}
			}
		}
	}
	if len(grants) == 0 {
		t.Fatalf("the role %s has no grants", r.name)
	}
	return grants
}

// rules returns the rules of a role. Unless change is nil, it replaces them
// with the result of change.
func (s *site) rules(t *testing.T, r role, change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	t.Helper()
	ctx, rbac := t.Context(), s.client.RbacV1()
	var rules []rbacv1.PolicyRule
	var err error
	if r.namespace == "" {
		var found *rbacv1.ClusterRole
		if found, err = rbac.ClusterRoles().Get(ctx, r.name, metav1.GetOptions{}); err == nil && change != nil {
			found.Rules = change(found.Rules)
			found, err = rbac.ClusterRoles().Update(ctx, found, metav1.UpdateOptions{})
		}
		if err == nil {
			rules = found.Rules
		}
	} else {
		var found *rbacv1.Role
		if found, err = rbac.Roles(r.namespace).Get(ctx, r.name, metav1.GetOptions{}); err == nil && change != nil {
			found.Rules = change(found.Rules)
			found, err = rbac.Roles(r.namespace).Update(ctx, found, metav1.UpdateOptions{})
		}
		if err == nil {
			rules = found.Rules
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// takeAway removes grants from their role and returns once the cluster applies
// that. The function that it returns restores them in the same way.
func (s *site) takeAway(t *testing.T, taken []grant) (giveBack func()) {
	t.Helper()
	r := taken[0].role
	var before []rbacv1.PolicyRule
	s.rules(t, r, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		before = rules
		var left []rbacv1.PolicyRule
		for _, g := range s.grantsOf(t, taken[0].user, r) {
			if !slices.Contains(taken, g) {
				left = append(left, g.rule())
			}
		}
		return left
	})
	s.awaitMay(t, taken, false)
	return func() {
		t.Helper()
		s.rules(t, r, func([]rbacv1.PolicyRule) []rbacv1.PolicyRule { return before })
		s.awaitMay(t, taken, true)
	}
}

// awaitMay waits until the users have all of the grants, or none of them.
func (s *site) awaitMay(t *testing.T, grants []grant, may bool) {
	t.Helper()
	poll.Eventually(t, func() string {
		for _, g := range grants {
			resource, subresource, _ := strings.Cut(g.resource, "/")
			attributes := &authorizationv1.ResourceAttributes{
				Namespace: g.role.namespace, Verb: g.verb, Group: g.group, Resource: resource, Subresource: subresource, Name: g.name,
			}
			if g.user == editor {
				attributes.Namespace = team
			}
			review, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: g.user, ResourceAttributes: attributes},
			}, metav1.CreateOptions{})
			if err != nil {
				return err.Error()
			}
			if review.Status.Allowed != may {
				return fmt.Sprintf("%s: allowed is %v", g, review.Status.Allowed)
			}
		}
		return ""
	})
}
