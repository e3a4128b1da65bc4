// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
)

// rbacPrefix is the prefix of the paths of rights.
const rbacPrefix = "/apis/" + rbacv1.GroupName + "/v1"

// clusterRoles is the number of ClusterRoles of the policy.
const clusterRoles = 100

// tenant is the number of the user and the Namespace that are measured.
const tenant = 7

// Names in the policy.
func policyNamespace(i int) string { return fmt.Sprintf("tenant-%d", i) }
func policyUser(i int) string      { return fmt.Sprintf("user-%d", i) }
func policyTeam(i int) string      { return fmt.Sprintf("team-%d", i) }
func policyRole(i int) string      { return fmt.Sprintf("role-%d", i) }

// loadPolicy creates a policy, once: ClusterRoles, and many Namespaces with a
// RoleBinding each, of one of the ClusterRoles to a user and a group.
func (s *side) loadPolicy(ctx context.Context, size size) error {
	if s.hasPolicy {
		return nil
	}
	_, err := s.load(ctx, manyClients, size.bindings, func(ctx context.Context, c *client, i int) error {
		return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(policyNamespace(i)))
	})
	if err != nil {
		return err
	}
	return s.bindTenants(ctx, size)
}

// bindTenants creates the ClusterRoles and the RoleBindings of the policy.
func (s *side) bindTenants(ctx context.Context, size size) error {
	_, err := s.load(ctx, manyClients, clusterRoles, func(ctx context.Context, c *client, i int) error {
		return c.create(ctx, rbacPrefix+"/clusterroles", s.clusterRoleBody(policyRole(i)))
	})
	if err != nil {
		return err
	}
	_, err = s.load(ctx, manyClients, size.bindings, func(ctx context.Context, c *client, i int) error {
		return c.create(ctx, roleBindingsPath(i), roleBindingBody("tenants", policyRole(i%clusterRoles), policyUser(i), policyTeam(i)))
	})
	s.hasPolicy = err == nil
	return err
}

func roleBindingsPath(namespace int) string {
	return rbacPrefix + "/namespaces/" + policyNamespace(namespace) + "/rolebindings"
}

// group returns the API group of Pods.
func (s *side) group() string {
	if s.name == kube {
		return ""
	}
	return "tenancy.borough.io"
}

func (s *side) clusterRoleBody(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},"rules":[`+
		`{"apiGroups":[%[2]q],"resources":["pods","limitranges"],"verbs":["get","list","watch"]},`+
		`{"apiGroups":[%[2]q],"resources":["pods"],"verbs":["create","update","patch","delete"]}]}`, name, s.group())
}

func roleBindingBody(name, role, user, team string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":%q},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[`+
		`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q},`+
		`{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":%q}]}`, name, role, user, team)
}

// as returns the side with clients that authenticate as a user.
func (s *side) as(ctx context.Context, user string, groups ...string) (*side, error) {
	config, err := s.userConfig(ctx, user, groups...)
	if err != nil {
		return nil, fmt.Errorf("make a client certificate of %s for %s: %w", s.name, user, err)
	}
	return &side{name: s.name, apiVersion: s.apiVersion, prefix: s.prefix, config: config}, nil
}
