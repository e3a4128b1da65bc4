// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standard serves a kind with the standard verbs.
package standard

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/deletion"
	"github.com/borough-io/borough/pkg/registry/objectinfo"
	"github.com/borough-io/borough/pkg/registry/table"
)

// REST serves a kind from a store.
type REST struct {
	*genericregistry.Store
	collection deletecollection.Deleter
}

var (
	_ rest.StandardStorage     = &REST{}
	_ rest.ResetFieldsStrategy = &REST{}
)

// RESTStrategy has the rules by which objects of a kind are written.
type RESTStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
}

// NewREST completes a store, and returns what serves a kind from it.
func NewREST(store *genericregistry.Store, strategy RESTStrategy, options *generic.StoreOptions) (*REST, error) {
	store.CreateStrategy, store.UpdateStrategy, store.DeleteStrategy = strategy, strategy, strategy
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("complete the store of %s: %w", store.DefaultQualifiedResource, err)
	}
	return &REST{Store: store, collection: deletecollection.Deleter{Store: store}}, nil
}

// List reads the objects that the options select.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return table.List(ctx, r.Store, func() (runtime.Object, error) {
		list, err := r.Store.List(ctx, options)
		if err != nil {
			return nil, err
		}
		return list, coregroup.ConvertManagedFields(ctx, list)
	})
}

// Update changes an object, or creates it if the strategy of the store allows that.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return Update(ctx, r.Store, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}

// Update changes an object in a store, which may be that of a subresource.
func Update(ctx context.Context, store *genericregistry.Store, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return deletion.Update(ctx, store, name, UpdatedObjectInfo(objInfo), createValidation, updateValidation, forceAllowCreate, options)
}

// UpdatedObjectInfo returns info for an update through our group or the core group, with
// BadRequest in place of errors that have no status code.
func UpdatedObjectInfo(info rest.UpdatedObjectInfo) rest.UpdatedObjectInfo {
	return objectinfo.BadRequestOnInvalidPatch(rest.WrapUpdatedObjectInfo(coregroup.UpdatedObjectInfo(info), withoutKinds))
}

// withoutKinds removes the kinds from both objects. Where the type of a version is the
// internal type, too, server-side apply sets that of the current object and not that of
// the new one. The store then finds them different, and writes an apply that changes
// nothing.
func withoutKinds(_ context.Context, updated, old runtime.Object) (runtime.Object, error) {
	for _, obj := range []runtime.Object{updated, old} {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return updated, nil
}

// Delete deletes an object.
func (r *REST) Delete(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return deletion.Delete(ctx, r.Store, name, deleteValidation, options)
}

// DeleteCollection deletes the objects that the list options select.
func (r *REST) DeleteCollection(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.collection.DeleteCollection(ctx, deleteValidation, options, listOptions)
}
