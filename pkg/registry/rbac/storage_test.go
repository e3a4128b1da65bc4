// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/contenttest"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestRemovalByAnOutdatedUpdate releases a Role that is being deleted. Before the update
// can remove it, another client has removed it and created it again.
func TestRemovalByAnOutdatedUpdate(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	namespace := contenttest.New(t, member).Namespace
	config := storagetest.NewStandaloneConfig(member)
	s, err := NewStorage(config.Scheme, storagetest.NewBackend(t, storage.NewOptions(), config), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*REST{s.Roles, s.RoleBindings, s.ClusterRoles, s.ClusterRoleBindings} {
		t.Cleanup(r.Destroy)
	}
	roles := s.Roles
	ctx := request.WithUser(request.WithNamespace(t.Context(), namespace), &user.DefaultInfo{Groups: []string{user.SystemPrivilegedGroup}})
	create := func(finalizers ...string) {
		t.Helper()
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "foo", Namespace: namespace, Finalizers: finalizers}}
		if _, err := roles.Create(ctx, role, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	release := func() {
		t.Helper()
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			role := old.DeepCopyObject().(*rbacv1.Role)
			role.Finalizers = nil
			return role, nil
		})
		if _, _, err := roles.Update(ctx, "foo", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	create("example.com/x")
	if _, _, err := roles.Delete(ctx, "foo", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	roles.Storage.Storage = storagetest.BeforeDelete(roles.Storage.Storage, func() {
		release()
		create()
	})
	release()
	if _, err := roles.Get(ctx, "foo", &metav1.GetOptions{}); err != nil {
		t.Errorf("the new Role: %v", err)
	}
}
