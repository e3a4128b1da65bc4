// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// StatusREST serves namespaces/status.
type StatusREST struct {
	store *genericregistry.Store
}

// FinalizeREST serves namespaces/finalize, the one way to change the
// finalizers of a Namespace.
type FinalizeREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
	_ rest.Updater             = &FinalizeREST{}
	_ rest.NamedCreater        = &FinalizeREST{}
	_ rest.ResetFieldsStrategy = &FinalizeREST{}
)

// New returns an empty Namespace.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store is shared, and REST ends it.
func (r *StatusREST) Destroy() {}

// Get reads one Namespace; a patch starts from it.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status and the metadata. It never creates.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return updateOrRemove(ctx, r.store, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields names the fields that a write does not change.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints Namespaces.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

// New returns an empty Namespace.
func (r *FinalizeREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store is shared, and REST ends it.
func (r *FinalizeREST) Destroy() {}

// Update changes the finalizers and the metadata. It never creates.
func (r *FinalizeREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return updateOrRemove(ctx, r.store, name, objInfo, createValidation, updateValidation, false, options)
}

// Create does what Update does. The design of namespaces has agents POST to
// finalize, and they are served.
func (r *FinalizeREST) Create(ctx context.Context, name string, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	validateUpdate := func(ctx context.Context, obj, _ runtime.Object) error { return createValidation(ctx, obj) }
	updated, _, err := r.Update(ctx, name, rest.DefaultUpdatedObjectInfo(obj), nil, validateUpdate, false, &metav1.UpdateOptions{
		DryRun:          options.DryRun,
		FieldManager:    options.FieldManager,
		FieldValidation: options.FieldValidation,
	})
	return updated, err
}

// GetResetFields names the fields that a write does not change.
func (r *FinalizeREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}
