// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestOrder checks the order of the errors, which is that of Kubernetes.
func TestOrder(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "a", Namespace: "n"}
	clusterMeta := metav1.ObjectMeta{Name: "a"}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole"}
	for name, test := range map[string]struct {
		errs field.ErrorList
		want []string
	}{
		"a RoleBinding": {
			ValidateRoleBinding(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Rule"}, Subjects: []rbacv1.Subject{{Kind: "Robot"}, {Kind: "User"}}}),
			[]string{"roleRef.apiGroup", "roleRef.kind", "subjects[0].kind", "subjects[1].apiGroup", "subjects[0].name", "subjects[1].name", "roleRef.name"},
		},
		"a ClusterRoleBinding": {
			ValidateClusterRoleBinding(&rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta, RoleRef: ref, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount"}}}),
			[]string{"subjects[0].namespace", "subjects[0].name", "roleRef.name"},
		},
		"an update of a RoleBinding that changes the role": {
			ValidateRoleBindingUpdate(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{{Kind: "Robot"}}},
				&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"}}),
			[]string{"roleRef.name", "subjects[0].kind", "metadata.resourceVersion", "roleRef", "subjects[0].name"},
		},
		"a Role": {
			ValidateRole(&rbacv1.Role{Rules: []rbacv1.PolicyRule{{}, {Verbs: []string{"get"}}}}),
			[]string{"metadata.name", "metadata.namespace", "rules[0].apiGroups", "rules[0].resources", "rules[1].apiGroups", "rules[1].resources", "rules[0].verbs"},
		},
		"an update of a ClusterRole": {
			ValidateClusterRoleUpdate(&rbacv1.ClusterRole{
				ObjectMeta:      metav1.ObjectMeta{Name: "a", UID: "2", ResourceVersion: "1"},
				Rules:           []rbacv1.PolicyRule{{NonResourceURLs: []string{"/"}}},
				AggregationRule: &rbacv1.AggregationRule{},
			}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "1"}}),
			[]string{"aggregationRule.clusterRoleSelectors", "metadata.uid", "rules[0].verbs"},
		},
	} {
		var got []string
		for _, err := range test.errs {
			got = append(got, err.Field)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got errors of %q, want %q", name, got, test.want)
		}
	}
}
