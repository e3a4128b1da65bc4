// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacetemplate serves NamespaceTemplates from etcd, and chooses the one for a
// new Namespace.
package namespacetemplate

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/standard"
)

var resource = tenancy.Resource("namespacetemplates")

// Rights says which roles users may grant by templates.
type Rights interface {
	// ConfirmTemplate returns Forbidden unless the user of the request may write an
	// object that causes RoleBindings to the role in any Namespace. Without an old object
	// it is created.
	ConfirmTemplate(ctx context.Context, resource schema.GroupResource, obj, old runtime.Object, ref rbacv1.RoleRef) error
}

// Config is what a REST needs.
type Config struct {
	Scheme      *runtime.Scheme
	RESTOptions generic.RESTOptionsGetter
	// Prefix is that of the keys of NamespaceTemplates.
	Prefix string
	// Rights is nil if the server has no policy. Templates then have no RoleBindings.
	Rights Rights
	// Unreadable returns the names of the templates that cannot be read.
	Unreadable func() []string
}

// NewREST returns what serves namespacetemplates.
func NewREST(config Config) (*REST, error) {
	strategy := strategy{standard.NewStrategy(config.Scheme), config.Rights != nil}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.NamespaceTemplate{} },
		NewListFunc:               func() runtime.Object { return &tenancy.NamespaceTemplateList{} },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: tenancy.Resource("namespacetemplate"),

		TableConvertor: newTableConvertor(),
	}
	served, err := standard.NewREST(store, strategy, &generic.StoreOptions{RESTOptions: config.RESTOptions})
	if err != nil {
		return nil, err
	}
	return &REST{REST: served, prefix: config.Prefix, rights: config.Rights, unreadable: config.Unreadable}, nil
}

// REST serves namespacetemplates.
type REST struct {
	*standard.REST
	prefix     string
	rights     Rights
	unreadable func() []string
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// ShortNames returns nst.
func (r *REST) ShortNames() []string { return []string{"nst"} }

// Create creates a NamespaceTemplate. It returns Forbidden if the user could not grant
// the role of its RoleBinding in every Namespace.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.REST.Create(ctx, obj, r.confirmed(createValidation), options)
}

// Update changes a NamespaceTemplate, or creates it. It returns Forbidden as Create does.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	confirmed := func(ctx context.Context, obj, old runtime.Object) error {
		if err := r.confirm(ctx, obj, old); err != nil {
			return err
		}
		return updateValidation(ctx, obj, old)
	}
	return r.REST.Update(ctx, name, objInfo, r.confirmed(createValidation), confirmed, forceAllowCreate, options)
}

// confirmed returns a validation that confirms the rights of the user first. The
// template is valid then.
func (r *REST) confirmed(createValidation rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := r.confirm(ctx, obj, nil); err != nil {
			return err
		}
		return createValidation(ctx, obj)
	}
}

func (r *REST) confirm(ctx context.Context, obj, old runtime.Object) error {
	binding := obj.(*tenancy.NamespaceTemplate).Spec.RoleBinding
	if binding == nil || r.rights == nil {
		return nil
	}
	return r.rights.ConfirmTemplate(ctx, resource, obj, old, binding.RoleRef)
}
