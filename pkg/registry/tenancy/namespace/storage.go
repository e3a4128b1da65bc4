// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/table"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace/content"
	"github.com/borough-io/borough/pkg/visibility"
)

// Storage serves namespaces and its subresources.
type Storage struct {
	Namespace *REST
	Status    *StatusREST
	Finalize  *FinalizeREST
}

// NewStorage returns the storages, which share one store. With views, users without the
// right to list or watch all Namespaces see those that they may get. The creator creates
// the content of new Namespaces; it may be nil.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter, views *visibility.Views, creator *content.Creator) (Storage, error) {
	shared := base{standard.NewStrategy(scheme)}
	strategy := Strategy{shared}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &tenancy.Namespace{} },
		NewListFunc:               func() runtime.Object { return &tenancy.NamespaceList{} },
		PredicateFunc:             Match,
		DefaultQualifiedResource:  tenancy.Resource("namespaces"),
		SingularQualifiedResource: tenancy.Resource("namespace"),

		CreateStrategy:      strategy,
		UpdateStrategy:      strategy,
		DeleteStrategy:      strategy,
		ResetFieldsStrategy: strategy,

		ReturnDeletedObject:      true,
		ShouldDeleteDuringUpdate: shouldDeleteDuringUpdate,

		TableConvertor: NewTableConvertor(),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: GetAttrs, Indexers: Indexers()}); err != nil {
		return Storage{}, fmt.Errorf("complete the namespace store: %w", err)
	}

	status := *store
	statusStrategy := StatusStrategy{shared}
	status.UpdateStrategy = statusStrategy
	status.ResetFieldsStrategy = statusStrategy

	finalize := *store
	finalizeStrategy := FinalizeStrategy{shared}
	finalize.UpdateStrategy = finalizeStrategy
	finalize.ResetFieldsStrategy = finalizeStrategy

	rest := &REST{served: store, store: store, views: views, content: creator}
	return Storage{
		Namespace: rest,
		Status:    &StatusREST{subresource{&status}},
		Finalize:  &FinalizeREST{subresource{&finalize}},
	}, nil
}

// REST serves namespaces. It does not embed the store, which would serve deletecollection,
// too, and with it a way around the life cycle that Delete keeps.
type REST struct {
	served
	store   *genericregistry.Store
	views   *visibility.Views // or nil
	content *content.Creator  // or nil
}

// served is what the store serves as it is. Of rest.Lister, REST overrides List.
type served interface {
	rest.Storage
	rest.Getter
	rest.Lister
	rest.Scoper
	rest.SingularNameProvider
	rest.StorageVersionProvider
	rest.ResetFieldsStrategy
}

var (
	_ rest.Creater         = &REST{}
	_ rest.Watcher         = &REST{}
	_ rest.Patcher         = &REST{}
	_ rest.GracefulDeleter = &REST{}

	_ rest.CorruptObjectDeleterProvider = &REST{}
)

// Create stores a new Namespace with its content.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	dryRun := dryrun.IsDryRun(options.DryRun)
	withContent, createValidation := r.withContent(ctx, createValidation, dryRun)
	created, err := r.store.Create(withContent, obj, createValidation, options)
	if err == nil && dryRun {
		err = r.dryRunContent(ctx, created)
	}
	if err != nil {
		return nil, err
	}
	return created, nil
}

// List reads the Namespaces that the options select.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return table.List(ctx, r.store, func() (runtime.Object, error) {
		request, byRight, err := r.request(ctx, options)
		if err != nil {
			return nil, err
		}
		predicate := Selected(options)
		if byRight && (r.views == nil || !visibility.ListsPages(options, predicate)) {
			list, err := r.store.List(ctx, options)
			if err != nil || request == nil {
				return list, err
			}
			if held, err := heldAt(ctx, request, list); err != nil || held {
				return list, err
			}
		}
		view := r.views.Everything()
		if request != nil {
			view = request.View
		}
		namespaces, err := view.List(ctx, options, predicate)
		if apierrors.IsResourceExpired(err) {
			// The watch cache of the library leaves such lists to etcd, too.
			if stored := view.Stored(options); stored != nil {
				return r.store.List(ctx, stored)
			}
		}
		return namespaces, err
	})
}

// heldAt reports whether the user had the right to list all at the revision of the list.
func heldAt(ctx context.Context, request *visibility.Request, list runtime.Object) (bool, error) {
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return false, fmt.Errorf("read the metadata of a list: %w", err)
	}
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(listMeta.GetResourceVersion())
	if err != nil {
		return false, fmt.Errorf("read the resourceVersion of a list: %w", err)
	}
	return request.HeldAt(ctx, int64(revision))
}

// Watch streams the changes of the Namespaces that the options select.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	request, byRight, err := r.request(ctx, options)
	switch {
	case err != nil:
		return nil, err
	case byRight:
		// In the path watch/namespaces/NAME of the core group, the library takes NAME as the
		// namespace, which no Namespace is in.
		return r.store.Watch(genericrequest.WithNamespace(ctx, ""), options)
	}
	return request.Watch(ctx, Selected(options))
}

// request returns the request of a user who may not see all Namespaces always, or nil,
// and whether the user has the right to see all that the options select.
func (r *REST) request(ctx context.Context, options *metainternalversion.ListOptions) (request *visibility.Request, byRight bool, err error) {
	if r.views == nil {
		return nil, true, nil
	}
	request, err = r.views.For(ctx, options)
	if err != nil || request == nil {
		return nil, true, err
	}
	byRight, err = request.ByRight(ctx)
	return request, byRight, err
}

// Update changes a Namespace, but neither its finalizers nor its status. A Namespace
// that it creates, as apply does, is stored with its content.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	dryRun := dryrun.IsDryRun(options.DryRun)
	withContent, createValidation := r.withContent(ctx, createValidation, dryRun)
	obj, created, err := updateOrRemove(withContent, r.store, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	if err == nil && created && dryRun {
		err = r.dryRunContent(ctx, obj)
	}
	if err != nil {
		return nil, false, err
	}
	return obj, created, nil
}
