// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestReconcileContinues makes one object of each kind unreadable. All others are created.
func TestReconcileContinues(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.GetAction).GetName()
		return name == "cluster-admin", nil, errors.New("cannot be read")
	})
	err := reconcile(t.Context(), client.RbacV1())
	for _, want := range []string{"the cluster role cluster-admin: cannot be read", "the cluster role binding cluster-admin: cannot be read"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if want := len(ClusterRoles()) - 1; err != nil || len(roles.Items) != want {
		t.Errorf("%d roles, want %d: %v", len(roles.Items), want, err)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if want := len(clusterRoleBindings()) - 1; err != nil || len(bindings.Items) != want {
		t.Errorf("%d bindings, want %d: %v", len(bindings.Items), want, err)
	}
}
