// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterpolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// TestAggregatedRules checks that the rules of a ClusterRole are those that it has in the
// cluster, which decides by them, and not those that it selects.
func TestAggregatedRules(t *testing.T) {
	role := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: "x"},
		AggregationRule: &rbacv1.AggregationRule{},
		Rules:           []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
	}
	changes := make(chan rbac.Change, 1)
	if err := Follow(t.Context(), fake.NewClientset(role), func(c rbac.Change) { changes <- c }); err != nil {
		t.Fatal(err)
	}
	got := (<-changes).Object.(*rbacv1.ClusterRole)
	if got.AggregationRule != nil || len(got.Rules) != 1 {
		t.Errorf("got %v", got)
	}
}

// TestDeletion deletes a Role with and without an event of the watch, which may have ended before.
func TestDeletion(t *testing.T) {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}
	want := []rbac.Change{{Resource: rbacv1.Resource("roles"), Namespace: "a", Name: "x"}}
	for name, deleted := range map[string]any{
		"with":    role,
		"without": cache.DeletedFinalStateUnknown{Key: "a/x", Obj: role},
	} {
		var got []rbac.Change
		handler{rbacv1.Resource("roles"), func(c rbac.Change) { got = append(got, c) }}.OnDelete(deleted)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s an event: (-want +got)\n%s", name, diff)
		}
	}
}
