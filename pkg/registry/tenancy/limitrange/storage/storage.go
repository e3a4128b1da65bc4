// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage serves LimitRanges from etcd.
package storage

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/tenancy/limitrange"
)

// Storage serves limitranges.
type Storage struct {
	LimitRange *standard.REST
}

// NewStorage returns the storage.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (Storage, error) {
	strategy := limitrange.NewStrategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.LimitRange{} },
		NewListFunc:               func() runtime.Object { return &tenancy.LimitRangeList{} },
		DefaultQualifiedResource:  tenancy.Resource("limitranges"),
		SingularQualifiedResource: tenancy.Resource("limitrange"),

		CreateStrategy: strategy,
		UpdateStrategy: strategy,
		DeleteStrategy: strategy,

		TableConvertor: limitrange.NewTableConvertor(),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter}); err != nil {
		return Storage{}, fmt.Errorf("complete the limit range store: %w", err)
	}

	return Storage{LimitRange: standard.NewREST(store)}, nil
}
