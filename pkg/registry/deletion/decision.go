// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
)

// decision is the storage of a deletion, which decides from the object that it reads
// whether it removes it.
type decision struct {
	storage.Interface
	uid        types.UID // of the object that the deletion has read last
	finalizers []string  // of this object
}

// errOutdated ends a removal that is decided again.
var errOutdated = errors.New("another client has added a finalizer, or replaced the object")

// Get reads an object.
func (d *decision) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if err := d.Interface.Get(ctx, key, opts, out); err != nil {
		return err
	}
	return d.read(out)
}

// read remembers what the deletion decides from.
func (d *decision) read(obj runtime.Object) error {
	object, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	d.uid, d.finalizers = object.GetUID(), slices.Clone(object.GetFinalizers())
	return nil
}

// GuaranteedUpdate updates an object.
func (d *decision) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	reading := func(obj runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if err := d.read(obj); err != nil {
			return nil, nil, err
		}
		return update(obj, response)
	}
	return d.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, reading, cached)
}

// Delete removes an object, unless it is another one than the deletion has read, or has a
// finalizer that this had not.
func (d *decision) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	checked := func(ctx context.Context, obj runtime.Object) error {
		object, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		if object.GetUID() != d.uid ||
			slices.ContainsFunc(object.GetFinalizers(), func(f string) bool { return !slices.Contains(d.finalizers, f) }) {
			return errOutdated
		}
		return validate(ctx, obj)
	}
	return d.Interface.Delete(ctx, key, out, preconditions, checked, cached, opts)
}
