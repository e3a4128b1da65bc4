// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac serves the kinds of rbac.authorization.k8s.io. No user can grant rights
// through them that the user does not hold.
package rbac

import (
	"cmp"
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1" // Kubernetes has its descriptions in tables
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
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
		*kind.storage = &REST{served, escalation.unlessExempt(kind.confirm), awaitCurrent}
	}
	return s, nil
}

// REST serves one kind.
type REST struct {
	*standard.REST
	confirm      confirmFunc
	awaitCurrent AwaitCurrentFunc
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
	obj, created, err := r.REST.Update(ctx, name, confirmed, createValidation, updateValidation, forceAllowCreate, options)
	return obj, created, r.awaitDeleted(ctx, err)
}

// Delete deletes an object.
func (r *REST) Delete(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, deleted, err := r.REST.Delete(ctx, name, deleteValidation, options)
	withUID := options != nil && options.Preconditions != nil && options.Preconditions.UID != nil
	if withUID && apierrors.IsConflict(err) { // another object can have its name
		return obj, deleted, cmp.Or(r.awaitAll(ctx), err)
	}
	return obj, deleted, r.awaitDeleted(ctx, err)
}

// DeleteCollection deletes the objects that the list options select.
func (r *REST) DeleteCollection(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	list, err := r.REST.DeleteCollection(ctx, deleteValidation, options, listOptions)
	if err == nil {
		err = r.awaitAll(ctx) // another server can have deleted what the list does not have
	}
	return list, err
}

// awaitDeleted waits, after a write that got NotFound, until decisions no longer depend on the
// object: another server can have deleted it.
func (r *REST) awaitDeleted(ctx context.Context, err error) error {
	if apierrors.IsNotFound(err) {
		return cmp.Or(r.awaitAll(ctx), err)
	}
	return err
}

func (r *REST) awaitAll(ctx context.Context) error {
	if err := r.awaitCurrent(ctx); err != nil {
		return newNotCurrent("this server does not have the current RBAC objects yet, so decisions can depend on deleted ones", err)
	}
	return nil
}
