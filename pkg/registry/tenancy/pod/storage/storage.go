// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage serves Pods and their subresources from etcd.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
)

// Storage serves pods and its subresources.
type Storage struct {
	Pod                 *standard.REST
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

		ResetFieldsStrategy: strategy,
		ReturnDeletedObject: true,

		TableConvertor: pod.NewTableConvertor(),
	}
	pods, err := standard.NewREST(store, strategy, &generic.StoreOptions{
		RESTOptions: optsGetter,
		AttrFunc:    pod.GetAttrs,
		TriggerFunc: pod.Triggers(),
		Indexers:    pod.Indexers(),
	})
	if err != nil {
		return Storage{}, err
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
		Pod:                 pods,
		Status:              &StatusREST{subresource{&status}},
		Binding:             &BindingREST{store},
		Resize:              &ResizeREST{subresource{&resize}},
		EphemeralContainers: &EphemeralContainersREST{subresource{&ephemeralContainers}},
	}, nil
}
