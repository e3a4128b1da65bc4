// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
)

// ClearOptions say what a Clear is bound to and whether it is one.
type ClearOptions struct {
	// NamespaceUID is the UID of the Namespace.
	NamespaceUID types.UID
	// DryRun only tells what would be removed.
	DryRun bool
	// Removed is called for each object that was removed, as it was then, by
	// several goroutines. An object is held if it had a finalizer, or whoever
	// runs it had not confirmed its end: a delete would have waited.
	Removed func(obj metav1.Object, held bool)
}

// Clear removes all objects of the Namespace of the request, each in one write,
// whatever they wait for. Since that write does not depend on what the object is
// like by then, a finalizer that somebody adds in the meantime keeps nothing.
//
// It returns Conflict, and has removed nothing, if the Namespace has another UID
// or is not being deleted, and NotFound if there is none. As in a
// DeleteCollection, an object that may not be deleted does not keep the others,
// and the first such error is returned in the end.
func (d *Deleter) Clear(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options ClearOptions) error {
	listOptions := &metainternalversion.ListOptions{Limit: d.pageSize}
	for {
		_, page, next, err := d.list(ctx, listOptions)
		if err != nil {
			return err
		}
		// After the list, as in a purge.
		if err := d.checkNamespace(ctx, options.NamespaceUID); err != nil {
			return err
		}
		err = forEach(ctx, d.store.DeleteCollectionWorkers, page, func(ctx context.Context, obj runtime.Object) error {
			return d.clear(ctx, obj, deleteValidation, options)
		})
		if err != nil || next == "" {
			return err
		}
		listOptions.Continue = next
	}
}

// clear removes an object that was listed, unless it is gone or another has its
// name by now.
func (d *Deleter) clear(ctx context.Context, obj runtime.Object, deleteValidation rest.ValidateObjectFunc, options ClearOptions) error {
	listed, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	key, err := d.store.KeyFunc(ctx, listed.GetName())
	if err != nil {
		return err
	}
	removed := d.store.NewFunc()
	preconditions := &storage.Preconditions{UID: new(listed.GetUID())}
	err = d.store.Storage.Delete(ctx, key, removed, preconditions, storage.ValidateObjectFunc(deleteValidation), options.DryRun, nil, storage.DeleteOptions{})
	switch {
	case storage.IsNotFound(err), storage.IsInvalidObj(err): // not that UID
		return nil
	case err != nil:
		return storageerr.InterpretDeleteError(err, d.store.DefaultQualifiedResource, listed.GetName())
	}
	last, err := meta.Accessor(removed)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	options.Removed(last, len(last.GetFinalizers()) > 0 || d.graceful(ctx, removed, metav1.DeleteOptions{}))
	return nil
}
