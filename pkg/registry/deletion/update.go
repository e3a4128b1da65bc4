// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// Update updates an object as the store's Update does. An update that leaves nothing to
// wait for removes an object that is being deleted. The library does that in a second
// step, which removes what has the name by then: a new object, if another client has
// removed and created it in between, or one that was given a finalizer. Here it removes
// only the object that was updated, and the update is repeated if that has changed.
func Update(ctx context.Context, store *genericregistry.Store, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	shouldDelete := store.ShouldDeleteDuringUpdate
	if shouldDelete == nil {
		shouldDelete = genericregistry.ShouldDeleteDuringUpdate
	}
	for {
		removing, removal := *store, &removal{Interface: store.Storage.Storage}
		removing.Storage.Storage = removal
		removing.ShouldDeleteDuringUpdate = func(ctx context.Context, key string, obj, existing runtime.Object) bool {
			removal.updated = existing
			return shouldDelete(ctx, key, obj, existing)
		}
		obj, created, err := removing.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
		if !removal.outdated {
			return obj, created, err
		}
	}
}

// removal is the storage of an update that may remove an object.
type removal struct {
	storage.Interface
	updated  runtime.Object // before the update
	outdated bool           // when it was to be removed
}

// Delete removes the object that was updated.
func (r *removal) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	updated, err := meta.Accessor(r.updated)
	if err != nil {
		return err
	}
	bound := *preconditions
	bound.UID, bound.ResourceVersion = new(updated.GetUID()), new(updated.GetResourceVersion())
	err = r.Interface.Delete(ctx, key, out, &bound, validate, cached, opts)
	r.outdated = storage.IsInvalidObj(err)
	return err
}
