// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEscalation lets a user who may write roles and bindings grant rights that the user does not
// hold: without the verbs escalate and bind, with one of them, and with both.
func TestEscalation(t *testing.T) {
	t.Parallel()
	const api = "/apis/rbac.authorization.k8s.io/v1"
	ns := newNamespace(t, borough)
	user, admin := ns+"-granter", rights(t, borough)
	granter := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings", "clusterroles"}, Verbs: []string{"create", "patch"},
	}}}
	if _, err := admin.ClusterRoles().Create(t.Context(), granter, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range []string{user, user + "-all"} {
			if err := admin.ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	grant(t, borough, "", user, user)
	reader := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
	if _, err := admin.Roles(ns).Create(t.Context(), reader, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RoleBindings(ns).Create(t.Context(), newRoleBinding("reader", "Role", "reader", "bob"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	const (
		notHeld  = "is attempting to grant RBAC permissions not currently held"
		allowed  = ""
		notFound = "not found"
	)
	roles, bindings := api+"/namespaces/"+ns+"/roles", api+"/namespaces/"+ns+"/rolebindings"
	binding := func(role string) string {
		return `{"metadata":{"generateName":"granted-"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"` + role + `"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bob"}]}`
	}
	const patch, create = http.MethodPatch, http.MethodPost
	requests := []struct {
		name, method, path, body string
		// without, escalate and bind are the refusals without the verbs, and with one of them.
		without, escalate, bind string
	}{
		{"finalizers of a role", patch, roles + "/reader", `{"metadata":{"finalizers":["example.com/held"]}}`, allowed, allowed, allowed},
		{"finalizers of a role removed", patch, roles + "/reader", `{"metadata":{"finalizers":null}}`, allowed, allowed, allowed},
		{"a label of a role", patch, roles + "/reader", `{"metadata":{"labels":{"STEP":"b"}}}`, notHeld, allowed, notHeld},
		{"finalizers and a label of a role", patch, roles + "/reader", `{"metadata":{"finalizers":[],"labels":{"STEP":"c"}}}`, notHeld, allowed, notHeld},
		{"the rules of a role", patch, roles + "/reader", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","STEP"]}]}`, notHeld, allowed, notHeld},
		{"a new role", create, roles, `{"metadata":{"generateName":"new-"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, notHeld, allowed, notHeld},
		{"a new role without rules", create, roles, `{"metadata":{"generateName":"new-"}}`, allowed, allowed, allowed},
		{"an aggregated role", create, api + "/clusterroles", `{"metadata":{"name":"` + user + `-all"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"` + user + `"}}]}}`, "must have cluster-admin privileges to use the aggregationRule", allowed, "must have cluster-admin privileges to use the aggregationRule"},
		{"finalizers of a binding", patch, bindings + "/reader", `{"metadata":{"finalizers":["example.com/held"]}}`, allowed, allowed, allowed},
		{"finalizers of a binding removed", patch, bindings + "/reader", `{"metadata":{"finalizers":null}}`, allowed, allowed, allowed},
		{"the subjects of a binding", patch, bindings + "/reader", `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"STEP"}]}`, notHeld, notHeld, allowed},
		{"a new binding", create, bindings, binding("reader"), notHeld, notHeld, allowed},
		{"a new binding to a role that does not exist", create, bindings, binding("missing"), notFound, notFound, allowed},
	}
	for _, step := range []struct {
		verb    string
		refusal func(i int) string
	}{
		{"", func(i int) string { return requests[i].without }},
		{"escalate", func(i int) string { return requests[i].escalate }},
		{"bind", func(i int) string { return requests[i].bind }},
	} {
		t.Run("verb="+step.verb, func(t *testing.T) {
			if step.verb != "" {
				granter.Rules = append(granter.Rules[:1:1], rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{step.verb}})
				if _, err := admin.ClusterRoles().Update(t.Context(), granter, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			client := as(t, borough, user)
			for i, r := range requests {
				contentType := "application/json"
				if r.method == patch {
					contentType = "application/merge-patch+json"
				}
				body := strings.ReplaceAll(r.body, "STEP", "step-"+step.verb+"x")
				answer := client.Do(t, r.method, r.path, []byte(body), "Content-Type", contentType)
				want, refusal := http.StatusForbidden, step.refusal(i)
				switch {
				case refusal == notFound:
					want = http.StatusNotFound
				case refusal == allowed && r.method == create:
					want = http.StatusCreated
				case refusal == allowed:
					want = http.StatusOK
				}
				if answer.Code != want || !strings.Contains(string(answer.Body), refusal) {
					t.Errorf("%s: got %v, want %d %q", r.name, answer, want, refusal)
				}
			}
		})
	}
}
