// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// TestWritesOfAggregatedRules checks that rules are written only to a role that still
// aggregates others, in the version that was read.
func TestWritesOfAggregatedRules(t *testing.T) {
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	newRole := func(rule *rbacv1.AggregationRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u", ResourceVersion: "7"}, AggregationRule: rule, Rules: rules,
		}
	}
	for name, test := range map[string]struct {
		stored *rbacv1.ClusterRole // nil if it was deleted
		rules  []rbacv1.PolicyRule // that are aggregated
		writes int
	}{
		"aggregates":           {newRole(&rbacv1.AggregationRule{}), rules, 1},
		"aggregates no rules":  {newRole(&rbacv1.AggregationRule{}), nil, 2},
		"no longer aggregates": {newRole(nil), nil, 0},
		"has rules of its own": {newRole(nil), rules, 0},
		"was deleted":          {nil, rules, 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if test.stored != nil {
				client = fake.NewClientset(test.stored)
			}
			if err := apply(t.Context(), client.RbacV1(), rbac.Aggregated{Name: "x", Rules: test.rules}); err != nil {
				t.Fatal(err)
			}
			writes := 0
			for _, action := range client.Actions() {
				patch, ok := action.(clienttesting.PatchAction)
				if !ok {
					continue
				}
				writes++
				for _, want := range []string{`"uid":"u"`, `"resourceVersion":"`} {
					if !strings.Contains(string(patch.GetPatch()), want) {
						t.Errorf("the patch %s does not have %s", patch.GetPatch(), want)
					}
				}
			}
			if writes != test.writes {
				t.Errorf("%d writes, want %d", writes, test.writes)
			}
		})
	}
}
