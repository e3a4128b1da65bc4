// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// decision is the storage of a deletion, which decides from the finalizers that it reads
// whether it removes the object.
type decision struct {
	storage.Interface
	finalizers []string // that the deletion has read last
	outdated   bool     // when the object was to be removed
}

// errOutdated ends a removal that is decided again.
var errOutdated = errors.New("another client has added a finalizer")

// Get reads an object.
func (d *decision) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	err := d.Interface.Get(ctx, key, opts, out)
	if err == nil {
		d.finalizers, err = finalizersOf(out)
	}
	return err
}

// GuaranteedUpdate updates an object.
func (d *decision) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	reading := func(obj runtime.Object, response storage.ResponseMeta) (_ runtime.Object, _ *uint64, err error) {
		if d.finalizers, err = finalizersOf(obj); err != nil {
			return nil, nil, err
		}
		return update(obj, response)
	}
	return d.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, reading, cached)
}

// Delete removes an object, unless it has a finalizer that the deletion has not read.
func (d *decision) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	checked := func(ctx context.Context, obj runtime.Object) error {
		finalizers, err := finalizersOf(obj)
		if err != nil {
			return err
		}
		d.outdated = slices.ContainsFunc(finalizers, func(f string) bool { return !slices.Contains(d.finalizers, f) })
		if d.outdated {
			return errOutdated
		}
		return validate(ctx, obj)
	}
	return d.Interface.Delete(ctx, key, out, preconditions, checked, cached, opts)
}

func finalizersOf(obj runtime.Object) ([]string, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return slices.Clone(object.GetFinalizers()), nil
}
