// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcequota serves ResourceQuotas from etcd.
package resourcequota

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// NewREST returns what serves resourcequotas.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*standard.REST, error) {
	strategy := strategy{standard.NewNamespacedStrategy(scheme, validation.ValidateResourceQuota, validation.ValidateResourceQuotaUpdate)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.ResourceQuota{} },
		NewListFunc:               func() runtime.Object { return &tenancy.ResourceQuotaList{} },
		DefaultQualifiedResource:  tenancy.Resource("resourcequotas"),
		SingularQualifiedResource: tenancy.Resource("resourcequota"),

		ResetFieldsStrategy: strategy,
		ReturnDeletedObject: true, // as in core/v1

		TableConvertor: newTableConvertor(),
	}
	return standard.NewREST(store, strategy, &generic.StoreOptions{RESTOptions: optsGetter})
}
