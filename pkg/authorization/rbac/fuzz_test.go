// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"encoding/json"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// FuzzPolicy makes decisions by a policy that may have passed no validation. Nothing
// of it may be left when it is gone.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(`{"Roles":[{"metadata":{"name":"r","namespace":"n"},"rules":[{"verbs":["*"],"apiGroups":[""],"resources":["*/x"]}]}],
		"RoleBindings":[{"metadata":{"name":"b","namespace":"n"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"ServiceAccount","name":"u"}]}],
		"ClusterRoles":[{"metadata":{"name":"c","labels":{"a":"b"}},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}},{"matchExpressions":[{"key":"?","operator":"?"}]}]}}],
		"ClusterRoleBindings":[{"metadata":{"name":"b"},"roleRef":{"kind":"?","name":"c"},"subjects":[{"kind":"Group","name":"g"},{"kind":"?"}]}]}`), "u", "n", "get")
	f.Fuzz(func(t *testing.T, data []byte, name, namespace, verb string) {
		var policy struct {
			Roles               []rbacv1.Role
			RoleBindings        []rbacv1.RoleBinding
			ClusterRoles        []rbacv1.ClusterRole
			ClusterRoleBindings []rbacv1.ClusterRoleBinding
		}
		if len(data) > 1<<14 || json.Unmarshal(data, &policy) != nil {
			t.Skip("not a policy")
		}
		x := newIndex(t)
		var objects []metav1.Object
		for i := range policy.Roles {
			objects = append(objects, &policy.Roles[i])
		}
		for i := range policy.RoleBindings {
			objects = append(objects, &policy.RoleBindings[i])
		}
		for i := range policy.ClusterRoles {
			objects = append(objects, &policy.ClusterRoles[i])
		}
		for i := range policy.ClusterRoleBindings {
			objects = append(objects, &policy.ClusterRoleBindings[i])
		}
		for i, obj := range objects {
			switch obj.(type) { // as the paths of the API have it
			case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
				obj.SetNamespace("")
			default:
				if obj.GetNamespace() == "" {
					obj.SetNamespace("n")
				}
			}
			change(x, i+2, obj, false)
		}
		z := NewAuthorizer(x)
		u := &user.DefaultInfo{Name: name, Groups: []string{"g", name}}
		a := authorizer.AttributesRecord{User: u, Verb: verb, Namespace: namespace, Resource: "x", ResourceRequest: true}
		if _, _, err := z.Authorize(t.Context(), a); err != nil {
			t.Errorf("decide: %v", err)
		}
		if _, _, incomplete, _ := z.RulesFor(t.Context(), u, namespace); incomplete {
			t.Error("the rules are not complete")
		}
		for i := range policy.ClusterRoles {
			_ = z.ConfirmHeld(request.WithUser(t.Context(), u), policy.ClusterRoles[i].Rules)
		}
		x.Outdated()
		for i, obj := range objects {
			change(x, len(objects)+i+2, obj, true)
		}
		if n := entries(x); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}
