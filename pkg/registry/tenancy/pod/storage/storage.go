// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage serves Pods and their subresources from etcd.
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
	"github.com/borough-io/borough/pkg/registry/deletion"
	"github.com/borough-io/borough/pkg/registry/objectinfo"
	"github.com/borough-io/borough/pkg/registry/table"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
)

// Storage serves pods and its subresources.
type Storage struct {
	Pod                 *REST
	Status              *StatusREST
	Binding             *BindingREST
	Resize              *ResizeREST
	EphemeralContainers *EphemeralContainersREST
}

// NewStorage returns the storages, which share one store.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := pod.NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.Pod{} },
		NewListFunc:               func() runtime.Object { return &tenancy.PodList{} },
		PredicateFunc:             pod.Match,
		DefaultQualifiedResource:  tenancy.Resource("pods"),
		SingularQualifiedResource: tenancy.Resource("pod"),

		CreateStrategy:      strategy,
		UpdateStrategy:      strategy,
		DeleteStrategy:      strategy,
		ResetFieldsStrategy: strategy,

		ReturnDeletedObject: true,

		TableConvertor: pod.NewTableConvertor(),
	}
	options := &generic.StoreOptions{
		RESTOptions: optsGetter,
		AttrFunc:    pod.GetAttrs,
		TriggerFunc: pod.Triggers(),
		Indexers:    pod.Indexers(),
	}
	if err := store.CompleteWithOptions(options); err != nil {
		return Storage{}, fmt.Errorf("complete the pod store: %w", err)
	}

	status := *store
	statusStrategy := pod.NewStatusStrategy(scheme)
	status.UpdateStrategy = statusStrategy
	status.ResetFieldsStrategy = statusStrategy

	resize := *store
	resize.UpdateStrategy = pod.NewResizeStrategy(scheme)

	ephemeralContainers := *store
	ephemeralContainers.UpdateStrategy = pod.NewEphemeralContainersStrategy(scheme)

	return Storage{
		Pod:                 &REST{Store: store, collection: deletecollection.Deleter{Store: store}},
		Status:              &StatusREST{subresource{&status}},
		Binding:             &BindingREST{store},
		Resize:              &ResizeREST{subresource{&resize}},
		EphemeralContainers: &EphemeralContainersREST{subresource{&ephemeralContainers}},
	}, nil
}

// REST serves pods.
type REST struct {
	*genericregistry.Store
	collection deletecollection.Deleter
}

var (
	_ rest.StandardStorage     = &REST{}
	_ rest.ResetFieldsStrategy = &REST{}
)

// List reads the Pods that the options select.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return table.List(ctx, r.Store, options)
}

// Update changes a Pod.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, objectinfo.BadRequestOnInvalidPatch(objInfo), createValidation, updateValidation, forceAllowCreate, options)
}

// Delete deletes a Pod.
func (r *REST) Delete(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return deletion.Delete(ctx, r.Store, name, deleteValidation, options)
}

// DeleteCollection deletes the Pods that the list options select.
func (r *REST) DeleteCollection(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.collection.DeleteCollection(ctx, deleteValidation, options, listOptions)
}
