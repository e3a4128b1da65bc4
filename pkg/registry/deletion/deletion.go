// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion deletes and updates objects as the library's store does, but removes
// none that another client changes in between so that it has to stay, and deletes also
// while etcd is full.
//
// The store deletes a Pod in two writes: the first sets its deletionTimestamp, the
// second removes it. A full etcd rejects the first, so that no client could make
// room. Here, an object that would wait for nothing is then removed in one write.
package deletion

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/utils/ptr"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
)

// Delete deletes an object as the store's Delete does, with three differences.
//
// The store decides from the object that it has read whether to wait for finalizers, and
// then removes what has its name by then. Delete decides again if another client has added
// a finalizer, or replaced the object.
//
// While etcd is full, it removes an object that waits for nothing in one write: a watch
// then sees the object deleted without seeing it marked. For an object that waits for a
// finalizer or a grace period, it returns the error that etcd is full.
//
// Without a garbage collector, it deletes with Background.
func Delete(ctx context.Context, store *genericregistry.Store, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if options == nil {
		options = metav1.NewDeleteOptions(0) // the store's default
	}
	ctx = withGracePeriod(ctx, options)
	options = Propagation(store, options)
	for {
		deleting, decided := *store, &decision{Interface: store.Storage.Storage}
		deleting.Storage.Storage = decided
		// So that the store follows the propagation policy.
		deleting.EnableGarbageCollection = true
		obj, removed, err := deleting.Delete(ctx, name, validate, options.DeepCopy()) // the strategy changes them
		switch {
		case errors.Is(err, errOutdated):
			continue
		case tenancyerrors.IsStorageFull(err):
			return removeUnmarked(ctx, store, name, validate, options.DeepCopy(), err)
		}
		return obj, removed, err
	}
}

// Propagation returns the options with the propagation policy that applies: without a garbage
// collector it is Background, which also removes the finalizers of the other policies from
// the object, because nothing else does.
func Propagation(store *genericregistry.Store, options *metav1.DeleteOptions) *metav1.DeleteOptions {
	if store.EnableGarbageCollection {
		return options
	}
	options = options.DeepCopy()
	//lint:ignore SA1019 deprecated, but clients send it
	options.OrphanDependents = nil
	options.PropagationPolicy = new(metav1.DeletePropagationBackground)
	return options
}

type gracePeriodKey struct{}

func withGracePeriod(ctx context.Context, options *metav1.DeleteOptions) context.Context {
	requested := options.GracePeriodSeconds
	if requested != nil && *requested < 0 {
		requested = new(int64(1)) // as the library does
	}
	return context.WithValue(ctx, gracePeriodKey{}, requested)
}

// GracePeriodSeconds returns the grace period that the request of the context asks
// for, or nil; outside of Delete it is that of the options.
//
// The library asks the strategy about several versions of an object, the first of which
// may be outdated, and the strategy writes its answer to the options. The next answer
// must not depend on it: the grace period of a Pod without a node is 0, and the Pod may
// have been assigned to a node since.
func GracePeriodSeconds(ctx context.Context, options *metav1.DeleteOptions) *int64 {
	if requested, ok := ctx.Value(gracePeriodKey{}).(*int64); ok {
		return requested
	}
	return options.GracePeriodSeconds
}

// removeUnmarked removes an object in one write. It returns the error full if the
// object has to wait.
func removeUnmarked(ctx context.Context, store *genericregistry.Store, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, full error) (runtime.Object, bool, error) {
	key, err := store.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	var preconditions storage.Preconditions
	if options.Preconditions != nil {
		preconditions.UID = options.Preconditions.UID
		preconditions.ResourceVersion = options.Preconditions.ResourceVersion
	}
	// The write depends on the revision of the object that this has seen.
	var marked runtime.Object
	unheld := func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		marked = obj.DeepCopyObject()
		held, err := mark(ctx, store, marked, options.DeepCopy())
		if err == nil && held {
			return full
		}
		return err
	}
	out := store.NewFunc()
	if err := store.Storage.Delete(ctx, key, out, &preconditions, unheld, false, nil, storage.DeleteOptions{}); err != nil {
		return nil, false, storageerr.InterpretDeleteError(err, store.DefaultQualifiedResource, name)
	}
	revision, err := store.Storage.Versioner().ObjectResourceVersion(out)
	if err == nil {
		err = store.Storage.Versioner().UpdateObject(marked, revision)
	}
	if err != nil {
		return nil, false, apierrors.NewInternalError(err)
	}
	return marked, true, nil
}

// mark sets the deletionTimestamp and the grace period of an object as the store
// would, and reports whether the object then has to wait.
func mark(ctx context.Context, store *genericregistry.Store, obj runtime.Object, options *metav1.DeleteOptions) (held bool, err error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	graceful, pending, err := rest.BeforeDelete(store.DeleteStrategy, ctx, obj, options)
	if err != nil {
		return false, err
	}
	return pending ||
		graceful && ptr.Deref(options.GracePeriodSeconds, 0) > 0 ||
		len(object.GetFinalizers()) > 0 ||
		addsFinalizer(options), nil
}

// addsFinalizer reports whether the options request a finalizer for the garbage
// collector.
func addsFinalizer(options *metav1.DeleteOptions) bool {
	//lint:ignore SA1019 deprecated, but clients send it
	if orphan := options.OrphanDependents; orphan != nil {
		return *orphan
	}
	policy := ptr.Deref(options.PropagationPolicy, metav1.DeletePropagationBackground)
	return policy != metav1.DeletePropagationBackground
}
