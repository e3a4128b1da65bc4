// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/transaction"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// Backend is the etcd of a server. It is the RESTOptionsGetter of its stores, and checks
// what is stored for admission, and for the writes of several objects.
type Backend struct {
	library     generic.RESTOptionsGetter
	options     options.EtcdOptions
	connections *connections
	fence       *fence.Fence
	charger     *charge.Charger
	caches      *watchCaches
	feed        *changes.Feed // or nil
	unreadable  *unreadable.Objects
	awaitWrite  func(context.Context, schema.GroupResource, int64) error
	wrapWatch   func(context.Context, watch.Interface) watch.Interface
}

var (
	_ generic.RESTOptionsGetter = &Backend{}
	_ precondition.Checker      = &Backend{}
	_ quota.Checker             = &Backend{}
	_ transaction.Guards        = &Backend{}
)

// Check implements precondition.Checker for the namespaced resources.
func (b *Backend) Check(ctx context.Context, objects precondition.Objects) (staleAt int64, err error) {
	return b.fence.Check(ctx, objects)
}

// CheckQuotas implements quota.Checker.
func (b *Backend) CheckQuotas(ctx context.Context, namespace string, change *quota.Change) (*quota.Denial, error) {
	return b.fence.CheckQuotas(ctx, namespace, change)
}

// CachesNamespaces reports whether Namespaces have a watch cache.
func (b *Backend) CachesNamespaces() (bool, error) {
	return b.cached(tenancy.Resource("namespaces"))
}

// CachedPhase returns the phase of a Namespace, and false if it is not in the watch cache.
func (b *Backend) CachedPhase(ctx context.Context, name string) (tenancy.NamespacePhase, bool) {
	return b.caches.phase(ctx, name)
}

// Guard implements transaction.Guards.
func (b *Backend) Guard(ctx context.Context, name string) (*transaction.Guard, error) {
	return b.fence.Guard(ctx, name)
}

// ConditionPrefix returns the prefix of the keys of a resource, or an error if transactions cannot
// have conditions on it.
func (b *Backend) ConditionPrefix(resource schema.GroupResource) (string, error) {
	return b.fence.ConditionPrefix(resource)
}

// GetRESTOptions returns the library's options, with a decorator that creates the stores of
// this package.
func (b *Backend) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := b.library.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	cached, err := b.cached(resource)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	o.StorageConfig.Codec = untypedCodec{o.StorageConfig.Codec}
	o.Decorator = b.decorator(cached)
	return o, nil
}

// cached reports whether the resource has a watch cache.
func (b *Backend) cached(resource schema.GroupResource) (bool, error) {
	if !b.options.EnableWatchCache {
		return false, nil
	}
	sizes, err := options.ParseWatchCacheSizes(b.options.WatchCacheSizes)
	if err != nil {
		return false, err
	}
	size, set := sizes[resource]
	return !set || size > 0, nil
}

// decorator returns the function that creates the store of a resource, with or
// without a watch cache.
func (b *Backend) decorator(cached bool) generic.StorageDecorator {
	return func(
		config *storagebackend.ConfigForResource,
		resourcePrefix string,
		keyFunc func(obj runtime.Object) (string, error),
		newFunc func() runtime.Object,
		newListFunc func() runtime.Object,
		getAttrs storage.AttrFunc,
		triggers storage.IndexerFuncs,
		indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, remover, destroy, err := b.newStore(config, resourcePrefix, newFunc, newListFunc, cached)
		if err != nil {
			return nil, nil, fmt.Errorf("open the storage of %s: %w", config.GroupResource, err)
		}
		if cached {
			store, destroy, err = b.newWatchCache(store, destroy, cacher.Config{
				Versioner:           storage.APIObjectVersioner{},
				GroupResource:       config.GroupResource,
				EventsHistoryWindow: config.EventsHistoryWindow,
				ResourcePrefix:      resourcePrefix,
				KeyFunc:             keyFunc,
				NewFunc:             newFunc,
				NewListFunc:         newListFunc,
				GetAttrsFunc:        getAttrs,
				IndexerFuncs:        triggers,
				Indexers:            indexers,
				Codec:               config.Codec,
			})
			if err != nil {
				return nil, nil, fmt.Errorf("create the watch cache of %s: %w", config.GroupResource, err)
			}
			store = scopedStore{store, resourcePrefix}
		}
		store = nothingStore{interpretedStore{store}, &b.connections.reached}
		return removingStore{b.withHooks(store, config.GroupResource), remover}, destroy, nil
	}
}

// newWatchCache returns a store that serves from a watch cache of another store, and what
// destroys both.
func (b *Backend) newWatchCache(store storage.Interface, destroy factory.DestroyFunc, config cacher.Config) (storage.Interface, factory.DestroyFunc, error) {
	uncached := &progressRequestingStore{Interface: store}
	config.Storage = uncached
	if config.GroupResource == tenancy.Resource("namespaces") {
		config.Storage = decodedStore{uncached, b}
	}
	c, err := cacher.NewCacherFromConfig(config)
	if err != nil {
		destroy()
		return nil, nil, err
	}
	b.caches.add(config.GroupResource, watchCache{c, config.ResourcePrefix, config.NewListFunc})
	delegator := cacher.NewCacheDelegator(c, uncached)
	var cached storage.Interface = delegator
	if writesSeveral(config.GroupResource) {
		cached = atomicStore{uncached, delegator}
	}
	return cached, sync.OnceFunc(func() {
		delegator.Stop()
		c.Stop()
		destroy()
	}), nil
}

// withHooks returns the store with the functions of Config.
func (b *Backend) withHooks(store storage.Interface, resource schema.GroupResource) storage.Interface {
	if b.awaitWrite != nil {
		store = awaitingStore{store, awaiter{resource, b.awaitWrite}}
	}
	if b.wrapWatch != nil {
		store = watchWrappingStore{store, b.wrapWatch}
	}
	return store
}
