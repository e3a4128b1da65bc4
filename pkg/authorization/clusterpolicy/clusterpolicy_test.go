// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterpolicy_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/borough-io/borough/pkg/authorization/clusterpolicy"
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
	if err := clusterpolicy.Follow(t.Context(), fake.NewClientset(role), func(c rbac.Change) { changes <- c }); err != nil {
		t.Fatal(err)
	}
	got := (<-changes).Object.(*rbacv1.ClusterRole)
	if got.AggregationRule != nil || len(got.Rules) != 1 {
		t.Errorf("got %v", got)
	}
}
