// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event serves Events, of core/v1 and of events.k8s.io/v1. They expire, their
// rate is limited, and they never keep a Namespace.
package event

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/standard"
)

// NewREST returns the storage of Events, which expire some time after they were last
// written, in whole seconds.
func NewREST(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter, ttl time.Duration) (*REST, error) {
	strategy := strategy{standard.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &corev1.Event{} },
		NewListFunc:               func() runtime.Object { return &corev1.EventList{} },
		TTLFunc:                   func(runtime.Object, uint64, bool) (uint64, error) { return uint64(ttl / time.Second), nil },
		DefaultQualifiedResource:  corev1.Resource("events"),
		SingularQualifiedResource: corev1.Resource("event"),
		TableConvertor:            newTableConvertor(),
	}
	served, err := standard.NewREST(store, strategy, &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: getAttrs})
	if err != nil {
		return nil, err
	}
	return &REST{served, newLimiter()}, nil
}

// REST serves events.
type REST struct {
	*standard.REST
	limiter *limiter
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// ShortNames returns ev.
func (r *REST) ShortNames() []string { return []string{"ev"} }

// Create creates an Event. It returns TooManyRequests if there were too many in the
// Namespace.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if err := r.limiter.accept(ctx, options.DryRun); err != nil {
		return nil, err
	}
	return r.REST.Create(ctx, obj, createValidation, options)
}

// Update changes an Event, or creates it. It returns TooManyRequests if there were too
// many in the Namespace.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if err := r.limiter.accept(ctx, options.DryRun); err != nil {
		return nil, false, err
	}
	return r.REST.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}
