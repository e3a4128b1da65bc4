// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/standard"
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
	strategy := NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.Pod{} },
		NewListFunc:               func() runtime.Object { return &tenancy.PodList{} },
		PredicateFunc:             Match,
		DefaultQualifiedResource:  tenancy.Resource("pods"),
		SingularQualifiedResource: tenancy.Resource("pod"),

		ResetFieldsStrategy: strategy,
		ReturnDeletedObject: true,

		TableConvertor: NewTableConvertor(),
	}
	pods, err := standard.NewREST(store, strategy, &generic.StoreOptions{
		RESTOptions: optsGetter,
		AttrFunc:    GetAttrs,
		TriggerFunc: Triggers(),
		Indexers:    Indexers(),
	})
	if err != nil {
		return Storage{}, err
	}

	status := *store
	statusStrategy := NewStatusStrategy(scheme)
	status.UpdateStrategy = statusStrategy
	status.ResetFieldsStrategy = statusStrategy

	resize := *store
	resize.UpdateStrategy = NewResizeStrategy(scheme)

	ephemeralContainers := *store
	ephemeralContainers.UpdateStrategy = NewEphemeralContainersStrategy(scheme)

	return Storage{
		Pod:                 pods,
		Status:              &StatusREST{subresource{&status}},
		Binding:             &BindingREST{store},
		Resize:              &ResizeREST{subresource{&resize}},
		EphemeralContainers: &EphemeralContainersREST{subresource{&ephemeralContainers}},
	}, nil
}
