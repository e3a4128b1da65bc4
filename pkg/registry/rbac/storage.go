// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac serves the kinds of rbac.authorization.k8s.io. No user can grant rights
// through them that the user does not hold.
package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1" // Kubernetes has its descriptions in tables
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/rbac/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// Storage serves the four kinds.
type Storage struct {
	Roles, RoleBindings, ClusterRoles, ClusterRoleBindings *REST

	escalation escalation
}

// NewStorage returns the storage. It asks the authorizer who may escalate and bind.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter, authz authorizer.UnconditionalAuthorizer, rights Rights, awaitCurrent AwaitCurrentFunc) (Storage, error) {
	escalation := escalation{authz, rights, awaitCurrent}
	s := Storage{escalation: escalation}
	for _, kind := range []struct {
		storage            **REST
		resource, singular string
		object, list       func() runtime.Object
		strategy           standard.RESTStrategy
		tables             rest.TableConvertor
		confirm            confirmFunc
	}{
		{
			&s.Roles, "roles", "role",
			func() runtime.Object { return &rbacv1.Role{} }, func() runtime.Object { return &rbacv1.RoleList{} },
			standard.NewNamespacedStrategy(scheme, validation.ValidateRole, validation.ValidateRoleUpdate),
			rest.NewDefaultTableConvertor(rbacv1.Resource("roles")),
			escalation.confirmRole,
		},
		{
			&s.RoleBindings, "rolebindings", "rolebinding",
			func() runtime.Object { return &rbacv1.RoleBinding{} }, func() runtime.Object { return &rbacv1.RoleBindingList{} },
			standard.NewNamespacedStrategy(scheme, validation.ValidateRoleBinding, validation.ValidateRoleBindingUpdate),
			newBindingTable("roleBinding", rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"],
				func(b *rbacv1.RoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) { return b.RoleRef, b.Subjects }),
			escalation.confirmRoleBinding,
		},
		{
			&s.ClusterRoles, "clusterroles", "clusterrole",
			func() runtime.Object { return &rbacv1.ClusterRole{} }, func() runtime.Object { return &rbacv1.ClusterRoleList{} },
			standard.NewClusterScopedStrategy(scheme, validation.ValidateClusterRole, validation.ValidateClusterRoleUpdate),
			rest.NewDefaultTableConvertor(rbacv1.Resource("clusterroles")),
			escalation.confirmClusterRole,
		},
		{
			&s.ClusterRoleBindings, "clusterrolebindings", "clusterrolebinding",
			func() runtime.Object { return &rbacv1.ClusterRoleBinding{} }, func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
			standard.NewClusterScopedStrategy(scheme, validation.ValidateClusterRoleBinding, validation.ValidateClusterRoleBindingUpdate),
			newBindingTable("clusterRoleBinding", rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"],
				func(b *rbacv1.ClusterRoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) { return b.RoleRef, b.Subjects }),
			escalation.confirmClusterRoleBinding,
		},
	} {
		store := &genericregistry.Store{
			NewFunc:                   kind.object,
			NewListFunc:               kind.list,
			DefaultQualifiedResource:  rbacv1.Resource(kind.resource),
			SingularQualifiedResource: rbacv1.Resource(kind.singular),
			TableConvertor:            kind.tables,
		}
		served, err := standard.NewREST(store, kind.strategy, &generic.StoreOptions{RESTOptions: optsGetter})
		if err != nil {
			return Storage{}, err
		}
		*kind.storage = &REST{served, escalation.unlessExempt(kind.confirm)}
	}
	return s, nil
}

// REST serves one kind.
type REST struct {
	*standard.REST
	confirm confirmFunc
}

// confirmFunc returns an error unless the user of the request may write the object.
// Without an old object it is created.
type confirmFunc func(ctx context.Context, obj, old runtime.Object) error

var _ rest.StandardStorage = &REST{}

// Create creates an object. It returns Forbidden if it grants rights that the user
// does not hold.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if err := r.confirm(ctx, obj, nil); err != nil {
		return nil, err
	}
	return r.REST.Create(ctx, obj, createValidation, options)
}

// Update changes an object, or creates it. It returns Forbidden if it grants rights
// that the user does not hold.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	confirmed := rest.WrapUpdatedObjectInfo(objInfo, func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
		return obj, r.confirm(ctx, obj, old)
	})
	return r.REST.Update(ctx, name, confirmed, createValidation, updateValidation, forceAllowCreate, options)
}
