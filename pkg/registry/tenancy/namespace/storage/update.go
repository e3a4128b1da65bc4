// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/objectinfo"
)

// shouldDeleteDuringUpdate returns whether an update leaves a Terminating
// Namespace without finalizers, so that it is removed instead of updated.
func shouldDeleteDuringUpdate(ctx context.Context, key string, obj, existing runtime.Object) bool {
	return len(obj.(*tenancy.Namespace).Spec.Finalizers) == 0 &&
		genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
}

// updateOrRemove writes what objInfo makes of a Namespace. What leaves nothing
// to hold a terminating Namespace removes it, or, while there is content in it,
// is written like anything else: the Namespace then goes with its content.
func updateOrRemove(ctx context.Context, store *genericregistry.Store, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	objInfo = objectinfo.BadRequestOnInvalidPatch(coregroup.UpdatedObjectInfo(objInfo))
	for {
		removing, removal := *store, &removal{Interface: store.Storage.Storage}
		removing.Storage.Storage = removal
		removing.ShouldDeleteDuringUpdate = func(ctx context.Context, key string, obj, existing runtime.Object) bool {
			removal.updated = existing.(*tenancy.Namespace)
			return shouldDeleteDuringUpdate(ctx, key, obj, existing)
		}
		obj, created, err := removing.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
		switch {
		case removal.outdated:
			continue
		case !apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause):
			return obj, created, err
		}
		keeping := *store
		keeping.ShouldDeleteDuringUpdate = func(context.Context, string, runtime.Object, runtime.Object) bool { return false }
		return keeping.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	}
}

// removal is the store of an update that may remove a Namespace. The library's update
// removes what has the name by then: another Namespace, or one that another client has
// given a finalizer since. A removal removes only what was updated.
type removal struct {
	storage.Interface
	updated  *tenancy.Namespace // before the update
	outdated bool               // when it was to be removed
}

// Delete removes the Namespace that was updated.
func (r *removal) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	bound := *preconditions
	bound.UID, bound.ResourceVersion = &r.updated.UID, &r.updated.ResourceVersion
	err := r.Interface.Delete(ctx, key, out, &bound, validate, cached, opts)
	r.outdated = storage.IsInvalidObj(err)
	return err
}
