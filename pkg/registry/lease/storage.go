// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease serves the Leases of coordination.k8s.io, which elections of a leader
// write.
package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/kubernetes/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/table"
)

// NewREST returns the storage of Leases.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*standard.REST, error) {
	strategy := strategy{standard.NewNamespacedStrategy(scheme, validation.ValidateLease, validation.ValidateLeaseUpdate)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &coordinationv1.Lease{} },
		NewListFunc:               func() runtime.Object { return &coordinationv1.LeaseList{} },
		DefaultQualifiedResource:  coordinationv1.Resource("leases"),
		SingularQualifiedResource: coordinationv1.Resource("lease"),
		TableConvertor: table.NewConvertor(
			[]metav1.TableColumnDefinition{
				table.NameColumn(),
				{Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]},
				table.AgeColumn(),
			},
			func(lease *coordinationv1.Lease) ([]any, []metav1.TableRowCondition) {
				return []any{lease.Name, ptr.Deref(lease.Spec.HolderIdentity, ""), table.Age(lease.CreationTimestamp)}, nil
			}),
	}
	return standard.NewREST(store, strategy, &generic.StoreOptions{RESTOptions: optsGetter})
}

// strategy has the rules by which Leases are written.
type strategy struct {
	standard.KindStrategy[*coordinationv1.Lease]
}

// AllowUnconditionalUpdate is false: of two that write a Lease, one must lose.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// PrepareForCreate removes the fields of coordinated elections, which Kubernetes has
// behind a feature gate.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) { dropCoordination(obj) }

// PrepareForUpdate removes the fields of coordinated elections.
func (strategy) PrepareForUpdate(_ context.Context, obj, _ runtime.Object) { dropCoordination(obj) }

func dropCoordination(obj runtime.Object) {
	spec := &obj.(*coordinationv1.Lease).Spec
	spec.Strategy, spec.PreferredHolder = nil, nil
}
