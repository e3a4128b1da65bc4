// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/storage/charge"
)

// StatusREST serves pods/status.
type StatusREST struct{ subresource }

// ResizeREST serves pods/resize, the one way to change the resources of a Pod.
type ResizeREST struct{ subresource }

// EphemeralContainersREST serves pods/ephemeralcontainers, the one way to add
// such containers.
type EphemeralContainersREST struct{ subresource }

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
	_ rest.Patcher             = &ResizeREST{}
	_ rest.Patcher             = &EphemeralContainersREST{}
)

// subresource reads and updates a Pod by the rules of its store.
type subresource struct {
	store *genericregistry.Store
}

// New returns an empty Pod.
func (r *subresource) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store is shared, and REST ends it.
func (r *subresource) Destroy() {}

// Get reads one Pod; a patch starts from it.
func (r *subresource) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the part of a Pod that the subresource is for. It never
// creates.
func (r *subresource) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return standard.Update(ctx, r.store, name, objInfo, createValidation, updateValidation, false, options)
}

// ConvertToTable prints Pods.
func (r *subresource) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

// Update changes the status of a Pod.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.subresource.Update(charge.StatusOnly(ctx), name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}

// GetResetFields names the fields that a write does not change.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}
