// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// ownerReferencesPlugin is enabled in both servers.
const ownerReferencesPlugin = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"

// TestOwnerReferencesPermissions sends the same changes of owner references to
// kube-apiserver, of LimitRanges of the cluster, and to ours, as a tenant without
// the right to delete them or to update the finalizers of Namespaces.
func TestOwnerReferencesPermissions(t *testing.T) {
	t.Parallel()
	namespace, tenant, finalizer := newNamespace(t), newName("tenant"), newName("finalizer")
	newClusterNamespace(t, namespace)
	rule := rbacv1.PolicyRule{APIGroups: []string{"", v1.GroupName}, Resources: []string{"limitranges"}, Verbs: []string{"get", "create", "patch"}}
	finalize := rbacv1.PolicyRule{APIGroups: []string{"", v1.GroupName}, Resources: []string{"namespaces/finalizers"}, Verbs: []string{"update"}, ResourceNames: []string{namespace}}
	grant(t, "", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: tenant}, rule)
	grant(t, "", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: finalizer}, rule, finalize)

	as := func(user string) harness.HTTP {
		config, err := cluster.UserConfig(user)
		if err != nil {
			t.Fatal(err)
		}
		return harness.NewHTTP(t, config)
	}
	users := map[string]harness.HTTP{"tenant": as(tenant), "finalizer": as(finalizer), "admin": harness.NewHTTP(t, cluster.AdminConfig())}
	owner := func(kind string, block bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "GROUPVERSION", Kind: kind, Name: namespace, UID: "UIDOFOWNER", BlockOwnerDeletion: &block}}
	}
	// The garbage collector would delete an object whose owner does not exist.
	uidOf := func(api string) string {
		t.Helper()
		answer := users["admin"].Do(t, http.MethodGet, api+"/namespaces/"+namespace, nil)
		var ns metav1.PartialObjectMetadata
		if err := json.Unmarshal(answer.Body, &ns); err != nil || ns.UID == "" {
			t.Fatalf("the UID of the namespace: %v, %s", err, answer)
		}
		return string(ns.UID)
	}
	uids := map[string]string{"/api/v1": uidOf("/api/v1"), "/apis/tenancy.borough.io/v1": uidOf("/apis/tenancy.borough.io/v1")}
	const blocks = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
	for _, tc := range []struct {
		name, user string
		stored     []metav1.OwnerReference // of an existing object, unless create
		create     bool
		set        []metav1.OwnerReference
		want       string // part of the message; empty if it is allowed
	}{
		{"create without blocking", "tenant", nil, true, owner("Namespace", false), ""},
		{"create blocking", "tenant", nil, true, owner("Namespace", true), blocks},
		{"create blocking with the right", "finalizer", nil, true, owner("Namespace", true), ""},
		{"create blocking an unknown kind", "tenant", nil, true, owner("Nonsense", true), "cannot find RESTMapping for APIVersion GROUPVERSION Kind Nonsense"},
		{"create blocking as admin", "admin", nil, true, owner("Nonsense", true), ""},
		{"add an owner", "tenant", nil, false, owner("Namespace", false), "cannot set an ownerRef on a resource you can't delete: , <nil>"},
		{"add an owner as admin", "admin", nil, false, owner("Namespace", true), ""},
		{"remove an owner", "tenant", owner("Namespace", true), false, nil, "cannot set an ownerRef on a resource you can't delete: , <nil>"},
		{"keep the owner", "tenant", owner("Namespace", true), false, owner("Namespace", true), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := strings.ReplaceAll(tc.name, " ", "-")
			for _, side := range []struct{ api, groupVersion string }{{"/api/v1", "v1"}, {"/apis/tenancy.borough.io/v1", "tenancy.borough.io/v1"}} {
				path := side.api + "/namespaces/" + namespace + "/limitranges"
				body := func(owners []metav1.OwnerReference) []byte {
					t.Helper()
					data, err := json.Marshal(map[string]any{
						"apiVersion": side.groupVersion, "kind": "LimitRange",
						"metadata": map[string]any{"name": name, "ownerReferences": owners},
						"spec":     map[string]any{"limits": []any{}},
					})
					if err != nil {
						t.Fatal(err)
					}
					return []byte(strings.NewReplacer("GROUPVERSION", side.groupVersion, "UIDOFOWNER", uids[side.api]).Replace(string(data)))
				}
				var answer harness.Answer
				if tc.create {
					answer = users[tc.user].Do(t, http.MethodPost, path, body(tc.set), "Content-Type", "application/json")
				} else {
					if answer := users["admin"].Do(t, http.MethodPost, path, body(tc.stored), "Content-Type", "application/json"); answer.Code != http.StatusCreated {
						t.Fatal(answer)
					}
					answer = users[tc.user].Do(t, http.MethodPatch, path+"/"+name, body(tc.set), "Content-Type", "application/merge-patch+json")
				}
				message := strings.ReplaceAll(answer.Status().Message, side.groupVersion, "GROUPVERSION")
				if forbidden := answer.Code == http.StatusForbidden; forbidden != (tc.want != "") || !strings.Contains(message, tc.want) {
					t.Errorf("%s: got %s, want %q", side.groupVersion, answer, tc.want)
				}
			}
		})
	}
}
