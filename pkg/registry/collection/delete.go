// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

import (
	"context"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
)

// Remover is a storage that can remove an object without reading it.
type Remover interface {
	// Remove removes the object of the key if it still has the
	// resourceVersion, and tells whether it did.
	Remove(ctx context.Context, key string, resourceVersion uint64) (removed bool, err error)
}

// deletion is one call of DeleteCollection.
type deletion struct {
	*Deleter
	validate rest.ValidateObjectFunc
	options  *metav1.DeleteOptions
	purging  bool
	// deleted counts the objects that were removed, and remaining those that
	// were asked to go and are still there.
	deleted, remaining atomic.Int64
}

// delete deletes an object that was listed, unless it is gone or another has
// its name by now.
func (d *deletion) delete(ctx context.Context, obj runtime.Object) error {
	listed, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if d.purging {
		removed, err := d.remove(ctx, obj, listed)
		if err != nil {
			return err
		}
		if removed {
			d.deleted.Add(1)
			return nil
		}
	}
	options := d.options.DeepCopy() // the strategy writes to it
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	bind := options.Preconditions.UID == nil
	if bind {
		options.Preconditions.UID = new(listed.GetUID())
	}
	_, deleted, err := d.store.Delete(ctx, listed.GetName(), d.validate, options)
	if apierrors.IsNotFound(err) || bind && apierrors.IsConflict(err) && d.gone(ctx, listed) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case deleted && len(options.DryRun) == 0:
		d.deleted.Add(1)
	default:
		d.remaining.Add(1)
	}
	return nil
}

// gone tells whether a listed object is no more.
func (d *deletion) gone(ctx context.Context, listed metav1.Object) bool {
	obj, err := d.store.Get(ctx, listed.GetName(), &metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	current, err := meta.Accessor(obj)
	return err == nil && current.GetUID() != listed.GetUID()
}

// remove removes an object that has nothing to wait for, and tells whether it
// did: if not, or if the object has changed since it was listed, the delete
// needs the store's full rules. These would mark a Pod that has no node, in a
// write of its own, before they remove it; in a purge nobody waits for the mark.
func (d *deletion) remove(ctx context.Context, obj runtime.Object, listed metav1.Object) (bool, error) {
	if d.remover == nil || d.options.Preconditions != nil || len(d.options.DryRun) > 0 ||
		//lint:ignore SA1019 deprecated, but clients send it
		d.options.OrphanDependents != nil || ptr.Deref(d.options.PropagationPolicy, "") != metav1.DeletePropagationBackground ||
		listed.GetDeletionTimestamp() != nil || len(listed.GetFinalizers()) > 0 || d.graceful(ctx, obj, *d.options) {
		return false, nil
	}
	key, err := d.store.KeyFunc(ctx, listed.GetName())
	if err != nil {
		return false, err
	}
	revision, err := d.store.Storage.Versioner().ObjectResourceVersion(obj)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if err := d.validate(ctx, obj); err != nil {
		return false, err
	}
	return d.remover.Remove(ctx, key, revision)
}

// graceful tells whether the object is given time to end.
func (d *Deleter) graceful(ctx context.Context, obj runtime.Object, options metav1.DeleteOptions) bool {
	strategy, ok := d.store.DeleteStrategy.(rest.RESTGracefulDeleteStrategy)
	return ok && strategy.CheckGracefulDelete(ctx, obj, &options) && ptr.Deref(options.GracePeriodSeconds, 1) > 0
}
