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
// hold: without the verbs escalate and bind, and with one of them for one of the two resources.
func TestEscalation(t *testing.T) {
	t.Parallel()
	const api = "/apis/rbac.authorization.k8s.io/v1"
	ns := newNamespace(t, borough)
	user, admin := ns+"-granter", rights(t, borough)
	granter := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, Verbs: []string{"create", "patch"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}, // not enough to aggregate
	}}
	aggregated := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user + "-all"}, AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": user}}},
	}}
	for _, role := range []*rbacv1.ClusterRole{granter, aggregated} {
		if _, err := admin.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.ClusterRoles().Delete(context.Background(), role.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	grant(t, borough, "", user, user)
	reader := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
	if _, err := admin.Roles(ns).Create(t.Context(), reader, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RoleBindings(ns).Create(t.Context(), newRoleBinding("reader", "Role", "reader", "bob"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	const (
		notHeld       = "is attempting to grant RBAC permissions not currently held"
		notAllHeld    = "must have cluster-admin privileges to use the aggregationRule"
		allowed       = ""
		notFound      = "not found"
		escalate      = "escalate roles"
		escalateAll   = "escalate clusterroles"
		bind          = "bind roles"
		bindAll       = "bind clusterroles"
		patch, create = http.MethodPatch, http.MethodPost
	)
	roles, bindings := api+"/namespaces/"+ns+"/roles", api+"/namespaces/"+ns+"/rolebindings"
	// What concerns all Namespaces is not written.
	dryRun := func(path string) string { return api + path + "?dryRun=All" }
	binding := func(kind, role string) string {
		return `{"metadata":{"generateName":"granted-"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + kind + `","name":"` + role + `"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bob"}]}`
	}
	requests := []struct {
		name, method, path, body string
		// refusal is the one without the verb and resource that lift it.
		refusal, lift string
	}{
		{"finalizers of a role", patch, roles + "/reader", `{"metadata":{"finalizers":["example.com/held"]}}`, allowed, ""},
		{"finalizers of a role removed", patch, roles + "/reader", `{"metadata":{"finalizers":null}}`, allowed, ""},
		{"a label of a role", patch, roles + "/reader", `{"metadata":{"labels":{"STEP":"b"}}}`, notHeld, escalate},
		{"finalizers and a label of a role", patch, roles + "/reader", `{"metadata":{"finalizers":[],"labels":{"STEP":"c"}}}`, notHeld, escalate},
		{"the rules of a role", patch, roles + "/reader", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","STEP"]}]}`, notHeld, escalate},
		{"a new role", create, roles, `{"metadata":{"generateName":"new-"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, notHeld, escalate},
		{"a new role without rules", create, roles, `{"metadata":{"generateName":"new-"}}`, allowed, ""},
		{"a new cluster role", create, dryRun("/clusterroles"), `{"metadata":{"generateName":"new-"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, notHeld, escalateAll},
		{"an aggregated role", create, dryRun("/clusterroles"), `{"metadata":{"generateName":"new-"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"` + user + `"}}]}}`, notAllHeld, escalateAll},
		{"a label of an aggregated role", patch, dryRun("/clusterroles/" + aggregated.Name), `{"metadata":{"labels":{"STEP":"b"}}}`, notAllHeld, escalateAll},
		{"a role that was aggregated", patch, dryRun("/clusterroles/" + aggregated.Name), `{"aggregationRule":null}`, notAllHeld, escalateAll},
		{"finalizers of a binding", patch, bindings + "/reader", `{"metadata":{"finalizers":["example.com/held"]}}`, allowed, ""},
		{"finalizers of a binding removed", patch, bindings + "/reader", `{"metadata":{"finalizers":null}}`, allowed, ""},
		{"the subjects of a binding", patch, bindings + "/reader", `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"STEP"}]}`, notHeld, bind},
		{"a new binding", create, bindings, binding("Role", "reader"), notHeld, bind},
		{"a new binding to a role that does not exist", create, bindings, binding("Role", "missing"), notFound, bind},
		{"a new binding to a cluster role", create, bindings, binding("ClusterRole", "view"), notHeld, bindAll},
		{"a new cluster role binding", create, dryRun("/clusterrolebindings"), binding("ClusterRole", "cluster-admin"), notHeld, bindAll},
	}
	for _, step := range []string{"", escalate, escalateAll, bind, bindAll} {
		t.Run("right="+step, func(t *testing.T) {
			if verb, resource, ok := strings.Cut(step, " "); ok {
				granter.Rules = append(granter.Rules[:2:2], rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}, Verbs: []string{verb}})
				if _, err := admin.ClusterRoles().Update(t.Context(), granter, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			client := as(t, borough, user)
			for _, r := range requests {
				contentType := "application/json"
				if r.method == patch {
					contentType = "application/merge-patch+json"
				}
				body := strings.ReplaceAll(r.body, "STEP", "step-"+strings.ReplaceAll(step, " ", "-")+"x")
				answer := client.Do(t, r.method, r.path, []byte(body), "Content-Type", contentType)
				want, refusal := http.StatusForbidden, r.refusal
				if step == r.lift {
					refusal = allowed
				}
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
