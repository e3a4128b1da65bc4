// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestRightToListOneNamespace grants the right to list and watch a Namespace by its name,
// and not to get it, while the user watches it. The watch shows it, as a list does.
func TestRightToListOneNamespace(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	user := ns + "-alice"
	namespaces := clientAs(t, borough, user).TenancyV1().Namespaces()
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + ns}
	list, err := namespaces.List(t.Context(), options)
	if err != nil || len(list.Items) != 0 {
		t.Fatalf("before the grant: %v, %v", list, err)
	}
	following := options
	following.ResourceVersion, following.AllowWatchBookmarks, following.TimeoutSeconds = list.ResourceVersion, true, new(int64(60))
	w, err := namespaces.Watch(t.Context(), following)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	grantRule(t, borough, user, rbacv1.PolicyRule{
		APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"namespaces"}, ResourceNames: []string{ns}, Verbs: []string{"list", "watch"},
	})
	if list, err = namespaces.List(t.Context(), options); err != nil || len(list.Items) != 1 {
		t.Errorf("after the grant: %v, %v", list, err)
	}
	for event := range w.ResultChan() {
		if event.Type == watch.Added {
			return
		}
	}
	t.Error("the watch has ended without the Namespace")
}
