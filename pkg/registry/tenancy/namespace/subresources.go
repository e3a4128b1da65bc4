// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// StatusREST serves namespaces/status.
type StatusREST struct{ subresource }

// FinalizeREST serves namespaces/finalize, the one way to change the
// finalizers of a Namespace.
type FinalizeREST struct{ subresource }

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
	_ rest.Updater             = &FinalizeREST{}
	_ rest.NamedCreater        = &FinalizeREST{}
	_ rest.ResetFieldsStrategy = &FinalizeREST{}
)

// subresource updates a Namespace by the rules of its store.
type subresource struct {
	store *genericregistry.Store
}

// New returns an empty Namespace.
func (r *subresource) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store is shared, and REST ends it.
func (r *subresource) Destroy() {}

// Update changes the part of a Namespace that the subresource is for, and the metadata. It
// never creates.
func (r *subresource) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return updateOrRemove(ctx, r.store, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields names the fields that a write does not change.
func (r *subresource) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// Get reads one Namespace; a patch starts from it.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// ConvertToTable prints Namespaces.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

// Create does what Update does, but keeps the field managers. The design of namespaces has
// agents POST to finalize, and they are served.
func (r *FinalizeREST) Create(ctx context.Context, name string, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	validateUpdate := func(ctx context.Context, obj, _ runtime.Object) error { return createValidation(ctx, obj) }
	// The managed fields that the library gives to the object of a POST are those of a new one.
	keepManagers := func(_ context.Context, obj, old runtime.Object) (runtime.Object, error) {
		obj.(*tenancy.Namespace).ManagedFields = old.(*tenancy.Namespace).ManagedFields
		return obj, nil
	}
	updated, _, err := r.Update(ctx, name, rest.DefaultUpdatedObjectInfo(obj, keepManagers), nil, validateUpdate, false, &metav1.UpdateOptions{
		DryRun:          options.DryRun,
		FieldManager:    options.FieldManager,
		FieldValidation: options.FieldValidation,
	})
	return updated, err
}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate lets a POST have the UID of the
// Namespace that it is for, as a PUT.
func (*FinalizeREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// errHeld means that the Namespace may not be removed.
var errHeld = errors.New("the namespace is active, or held by another finalizer")

// FinalizeEmpty removes the finalizer kubernetes from a Terminating Namespace with the
// UID, and with it the Namespace, and reports whether it did. It changes nothing, and
// returns no error, if the Namespace does not exist, has another UID, is not
// Terminating, contains objects, or is held by another finalizer. It is one write, by
// the Namespace in the watch cache: storage verifies that it is current and empty.
func (r *FinalizeREST) FinalizeEmpty(ctx context.Context, name string, uid types.UID, validate rest.ValidateObjectUpdateFunc, dryRun bool) (finalized bool, err error) {
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return false, err
	}
	check := func(ctx context.Context, obj runtime.Object) error {
		ns := obj.(*tenancy.Namespace)
		last := slices.Equal(ns.Spec.Finalizers, []tenancy.FinalizerName{tenancy.FinalizerKubernetes}) && len(ns.Finalizers) == 0
		if ns.DeletionTimestamp == nil || !last {
			return errHeld
		}
		finalized := ns.DeepCopy()
		finalized.Spec.Finalizers = nil
		return validate(ctx, finalized, ns.DeepCopy())
	}
	err = r.store.Storage.Delete(ctx, key, &tenancy.Namespace{}, &storage.Preconditions{UID: &uid}, check, dryRun, nil, storage.DeleteOptions{})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errHeld), storage.IsNotFound(err), storage.IsInvalidObj(err), apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause):
		return false, nil
	}
	return false, storageerr.InterpretDeleteError(err, tenancy.Resource("namespaces"), name)
}
