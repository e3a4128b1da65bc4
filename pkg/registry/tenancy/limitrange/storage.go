// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limitrange serves LimitRanges from etcd.
package limitrange

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// NewREST returns what serves limitranges.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*standard.REST, error) {
	strategy := strategy{standard.NewNamespacedStrategy(scheme, validation.ValidateLimitRange, validation.ValidateLimitRangeUpdate)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.LimitRange{} },
		NewListFunc:               func() runtime.Object { return &tenancy.LimitRangeList{} },
		DefaultQualifiedResource:  tenancy.Resource("limitranges"),
		SingularQualifiedResource: tenancy.Resource("limitrange"),

		// As core/v1 does, with the columns Name and Created At.
		TableConvertor: rest.NewDefaultTableConvertor(tenancy.Resource("limitranges")),
	}
	return standard.NewREST(store, strategy, &generic.StoreOptions{RESTOptions: optsGetter})
}
