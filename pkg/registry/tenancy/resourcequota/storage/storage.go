// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage serves ResourceQuotas from etcd.
package storage

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/objectinfo"
	"github.com/borough-io/borough/pkg/registry/table"
	"github.com/borough-io/borough/pkg/registry/tenancy/resourcequota"
)

// Storage serves resourcequotas.
type Storage struct {
	ResourceQuota *REST
}

// NewStorage returns the storage.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := resourcequota.NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.ResourceQuota{} },
		NewListFunc:               func() runtime.Object { return &tenancy.ResourceQuotaList{} },
		PredicateFunc:             resourcequota.Match,
		DefaultQualifiedResource:  tenancy.Resource("resourcequotas"),
		SingularQualifiedResource: tenancy.Resource("resourcequota"),

		CreateStrategy: strategy,
		UpdateStrategy: strategy,
		DeleteStrategy: strategy,

		ResetFieldsStrategy: strategy,
		ReturnDeletedObject: true, // as in core/v1

		TableConvertor: resourcequota.NewTableConvertor(),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: resourcequota.GetAttrs}); err != nil {
		return Storage{}, fmt.Errorf("complete the resource quota store: %w", err)
	}

	resourceQuota := &REST{Store: store, collection: deletecollection.Deleter{Store: store}}
	return Storage{ResourceQuota: resourceQuota}, nil
}

// REST serves resourcequotas.
type REST struct {
	*genericregistry.Store
	collection deletecollection.Deleter
}

var (
	_ rest.StandardStorage     = &REST{}
	_ rest.ResetFieldsStrategy = &REST{}
)

// List reads the ResourceQuotas that the options select.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return table.List(ctx, r.Store, options)
}

// Update changes a ResourceQuota.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, objectinfo.BadRequestOnInvalidPatch(objInfo), createValidation, updateValidation, forceAllowCreate, options)
}

// DeleteCollection deletes the ResourceQuotas that the list options select.
func (r *REST) DeleteCollection(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.collection.DeleteCollection(ctx, deleteValidation, options, listOptions)
}
