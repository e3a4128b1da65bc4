// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collection deletes the objects that a list selects, for the
// registries of namespaced kinds.
//
// It takes the place of the library's DeleteCollection, which deletes by name
// whatever has that name by then. Here each delete is bound to the object that
// was listed. And it knows purges: a deletecollection that is bound to one
// incarnation of a Namespace, which deletes nothing unless that is the one
// there is and it is being deleted, and which costs little more than the
// deletes in etcd. A Clear is bound in the same way, and waits for nothing.
package collection

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// pageSize bounds the objects that are listed at once where the request does
// not. It is the library's.
const pageSize = 10000

// Deleter deletes objects of one store.
type Deleter struct {
	store      *genericregistry.Store
	namespaces rest.Getter
	remover    Remover // nil if the storage has none
	pageSize   int64
}

// New returns a Deleter for the store. It reads Namespaces from namespaces,
// whose Get has to be live when no resourceVersion is asked for, as that of a
// store is.
func New(store *genericregistry.Store, namespaces rest.Getter) *Deleter {
	remover, _ := store.Storage.Storage.(Remover)
	return &Deleter{store: store, namespaces: namespaces, remover: remover, pageSize: pageSize}
}

// DeleteCollection deletes the objects that the list options select, each as
// the store's Delete would, provided that it is still the object that was
// listed. An object that may not be deleted does not keep the others; the first
// such error is returned in the end.
//
// It returns the list of the objects, or nil for a purge (see WithPurge), where
// nobody wants to read them. A purge returns Conflict, and has deleted nothing, if the Namespace has another UID
// or is not being deleted, and NotFound if there is none.
func (d *Deleter) DeleteCollection(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	if listOptions == nil {
		listOptions = &metainternalversion.ListOptions{}
	}
	listOptions = listOptions.DeepCopy()
	onePage := listOptions.Limit > 0
	if !onePage {
		listOptions.Limit = d.pageSize
	}
	if options == nil {
		options = metav1.NewDeleteOptions(0) // as the store's Delete has it
	}
	purge, purging := PurgeFrom(ctx)
	del := deletion{Deleter: d, validate: deleteValidation, options: options, purging: purging}

	var first runtime.Object
	var items []runtime.Object
	for {
		list, page, next, err := d.list(ctx, listOptions)
		if err != nil {
			return nil, err
		}
		if purging {
			// After the list: what it has shown is then of this Namespace, or
			// of an earlier one and no longer there.
			if err := d.checkNamespace(ctx, purge.NamespaceUID); err != nil {
				return nil, err
			}
		}
		if err := forEach(ctx, d.store.DeleteCollectionWorkers, page, del.delete); err != nil {
			return nil, err
		}
		switch {
		case purging && next == "":
			if purge.Done != nil {
				purge.Done(int(del.deleted.Load()), int(del.remaining.Load()))
			}
			return nil, nil
		case purging && onePage:
			return nil, nil
		case purging:
		case onePage:
			return list, nil
		default:
			if items = append(items, page...); first == nil {
				first = list
			}
			if next == "" {
				return listOf(first, items)
			}
		}
		listOptions.Continue, listOptions.ResourceVersion, listOptions.ResourceVersionMatch = next, "", ""
	}
}

// list returns one page of the objects: as the list that it is, taken apart, and
// with what the next page continues, if there is one.
func (d *Deleter) list(ctx context.Context, options *metainternalversion.ListOptions) (list runtime.Object, page []runtime.Object, next string, err error) {
	if list, err = d.store.List(ctx, options); err != nil {
		return nil, nil, "", err
	}
	page, err = meta.ExtractList(list)
	if err != nil {
		return nil, nil, "", apierrors.NewInternalError(fmt.Errorf("read the list of objects to delete: %w", err))
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return nil, nil, "", apierrors.NewInternalError(fmt.Errorf("read the list of objects to delete: %w", err))
	}
	return list, page, listMeta.GetContinue(), nil
}

// listOf makes the first page the whole list.
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

// checkNamespace returns Conflict unless the Namespace of the request has the
// UID and is being deleted.
func (d *Deleter) checkNamespace(ctx context.Context, uid types.UID) error {
	name := request.NamespaceValue(ctx)
	obj, err := d.namespaces.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The store names the resource of the request, which is another one.
		return apierrors.NewNotFound(tenancy.Resource("namespaces"), name)
	}
	if err != nil {
		return err
	}
	ns, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read namespace %q: %w", name, err))
	}
	switch {
	case ns.GetUID() != uid:
		return apierrors.NewConflict(tenancy.Resource("namespaces"), name,
			fmt.Errorf("the request is for the content of a namespace with UID %s, this one has UID %s; it might have been deleted and created again", uid, ns.GetUID()))
	case ns.GetDeletionTimestamp() == nil:
		return apierrors.NewConflict(tenancy.Resource("namespaces"), name,
			errors.New("the request is for the content of a namespace that is being deleted, this one is not; delete it first"))
	}
	return nil
}
