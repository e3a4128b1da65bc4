// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage serves LimitRanges from etcd.
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
	"github.com/borough-io/borough/pkg/registry/tenancy/limitrange"
)

// Storage serves limitranges.
type Storage struct {
	LimitRange *REST
}

// NewStorage returns the storage.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := limitrange.NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.LimitRange{} },
		NewListFunc:               func() runtime.Object { return &tenancy.LimitRangeList{} },
		PredicateFunc:             limitrange.Match,
		DefaultQualifiedResource:  tenancy.Resource("limitranges"),
		SingularQualifiedResource: tenancy.Resource("limitrange"),

		CreateStrategy: strategy,
		UpdateStrategy: strategy,
		DeleteStrategy: strategy,

		TableConvertor: limitrange.NewTableConvertor(),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: limitrange.GetAttrs}); err != nil {
		return Storage{}, fmt.Errorf("complete the limit range store: %w", err)
	}

	limitRange := &REST{Store: store, collection: deletecollection.Deleter{Store: store}}
	return Storage{LimitRange: limitRange}, nil
}

// REST serves limitranges.
type REST struct {
	*genericregistry.Store
	collection deletecollection.Deleter
}

var _ rest.StandardStorage = &REST{}

// List reads the LimitRanges that the options select.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return table.List(ctx, r.Store, options)
}

// Update changes a LimitRange, or creates it.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, objectinfo.BadRequestOnInvalidPatch(objInfo), createValidation, updateValidation, forceAllowCreate, options)
}

// DeleteCollection deletes the LimitRanges that the list options select.
func (r *REST) DeleteCollection(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.collection.DeleteCollection(ctx, deleteValidation, options, listOptions)
}
