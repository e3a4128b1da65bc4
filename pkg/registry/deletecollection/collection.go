// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletecollection deletes the objects of namespaced kinds in bulk.
//
// It replaces the library's DeleteCollection, which deletes by name, even if
// another object has that name by then. Here each delete carries the UID of the object
// that was listed. Package namespacepurge builds on the same steps.
package deletecollection

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/deletion"
)

// defaultPageSize is the number of objects in one page of a list. It is the
// library's.
const defaultPageSize = 10000

// Deleter deletes objects of one store.
type Deleter struct {
	Store *genericregistry.Store
	// PageSize is the number of objects that are listed at once where the request
	// sets no limit. It defaults to 10,000.
	PageSize int64
}

// DeleteCollection deletes the objects that listOptions select, as the store's
// Delete would, and returns them as a list. If listOptions have a limit, it
// deletes one page. An object that is no longer the one that was listed is left
// alone. An object whose deletion is refused does not stop the others;
// DeleteCollection then returns the error of the first such object.
func (d *Deleter) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	if options == nil {
		options = metav1.NewDeleteOptions(0) // the default of the store's Delete
	}
	if listOptions == nil {
		listOptions = &metainternalversion.ListOptions{}
	}
	deleteOne := func(ctx context.Context, obj runtime.Object) error {
		_, _, err := d.Delete(ctx, obj, validate, options)
		return err
	}
	if listOptions.Limit > 0 {
		list, page, _, err := d.list(ctx, listOptions)
		if err == nil {
			err = d.ForEach(ctx, page, deleteOne)
		}
		if err != nil {
			return nil, err
		}
		return list, nil
	}
	var first runtime.Object
	var items []runtime.Object
	collect := func(list runtime.Object, page []runtime.Object) error {
		if first == nil {
			first = list
		}
		items = append(items, page...)
		return nil
	}
	if err := d.EachObject(ctx, listOptions, collect, deleteOne); err != nil {
		return nil, err
	}
	return listOf(first, items)
}

// EachObject lists the objects that options select, page by page, and calls f for each, as
// ForEach does, after it has called before with their page. It returns the first error that
// stops it: one of before or of a list, or one of f that does not concern only its object.
// Otherwise it returns the first error of f.
func (d *Deleter) EachObject(ctx context.Context, options *metainternalversion.ListOptions, before func(list runtime.Object, page []runtime.Object) error, f func(context.Context, runtime.Object) error) error {
	var refused error
	err := d.EachPage(ctx, options, func(list runtime.Object, page []runtime.Object) error {
		if err := before(list, page); err != nil {
			return err
		}
		err := d.ForEach(ctx, page, f)
		if IsRefused(err) {
			refused = cmp.Or(refused, err)
			return nil
		}
		return err
	})
	return cmp.Or(err, refused)
}

// EachPage lists the objects that options select, page by page, and calls f with
// each page, as the list and as its items. The first page may be empty. EachPage
// stops at the first error and returns it.
func (d *Deleter) EachPage(ctx context.Context, options *metainternalversion.ListOptions, f func(list runtime.Object, page []runtime.Object) error) error {
	options = options.DeepCopy()
	if options.Limit = d.PageSize; options.Limit <= 0 {
		options.Limit = defaultPageSize
	}
	for {
		list, page, next, err := d.list(ctx, options)
		if err == nil {
			err = f(list, page)
		}
		if err != nil || next == "" {
			return err
		}
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = next, "", ""
	}
}

// list returns one page, as the list and as its items, and the continue token of
// the next page, if there is one.
func (d *Deleter) list(ctx context.Context, options *metainternalversion.ListOptions) (list runtime.Object, page []runtime.Object, next string, err error) {
	if list, err = d.Store.List(ctx, options); err != nil {
		return nil, nil, "", err
	}
	if page, err = meta.ExtractList(list); err != nil {
		return nil, nil, "", apierrors.NewInternalError(fmt.Errorf("read the list of objects to delete: %w", err))
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return nil, nil, "", apierrors.NewInternalError(fmt.Errorf("read the list of objects to delete: %w", err))
	}
	return list, page, listMeta.GetContinue(), nil
}

// listOf turns the first page into the complete list.
func listOf(first runtime.Object, items []runtime.Object) (runtime.Object, error) {
	listMeta, err := meta.ListAccessor(first)
	if err == nil {
		listMeta.SetContinue("")
		listMeta.SetRemainingItemCount(nil)
		err = meta.SetList(first, items)
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("make the list of deleted objects: %w", err))
	}
	return first, nil
}

// Delete deletes an object that was listed, as the store's Delete would. It does
// nothing if the object is gone, or if another object has its name. If the object
// has to wait, for example for a finalizer, Delete returns it as it is now;
// otherwise it reports whether it has removed the object.
func (d *Deleter) Delete(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (waiting runtime.Object, removed bool, err error) {
	listed, err := meta.Accessor(obj)
	if err != nil {
		return nil, false, apierrors.NewInternalError(err)
	}
	options = options.DeepCopy() // the strategy changes them
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	bind := options.Preconditions.UID == nil
	if bind {
		options.Preconditions.UID = new(listed.GetUID())
	}
	after, removed, err := deletion.Delete(ctx, d.Store, listed.GetName(), validate, options)
	switch {
	case apierrors.IsNotFound(err), bind && apierrors.IsConflict(err) && d.isGone(ctx, listed):
		return nil, false, nil
	case err != nil, removed:
		return nil, removed, err
	}
	return after, false, nil
}

// isGone reports whether a listed object no longer exists.
func (d *Deleter) isGone(ctx context.Context, listed metav1.Object) bool {
	obj, err := d.Store.Get(ctx, listed.GetName(), &metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	current, err := meta.Accessor(obj)
	return err == nil && current.GetUID() != listed.GetUID()
}
