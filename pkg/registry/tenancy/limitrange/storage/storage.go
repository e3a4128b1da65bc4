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

// NewREST returns what serves limitranges.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*standard.REST, error) {
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
		return nil, fmt.Errorf("complete the limit range store: %w", err)
	}
	return standard.NewREST(store), nil
}
