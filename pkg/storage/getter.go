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
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/transaction"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// restOptionsGetter returns the library's RESTOptions with a decorator that creates
// the stores of this package. It also implements precondition.Checker, quota.Checker,
// transaction.Guards and transaction.Prefixes.
type restOptionsGetter struct {
	library     generic.RESTOptionsGetter
	options     options.EtcdOptions
	connections *connections
	fence       *fence.Fence
	caches      *watchCaches
	feed        *changes.Feed // or nil
	unreadable  *unreadable.Objects
	awaitWrite  func(context.Context, schema.GroupResource, int64) error
	wrapWatch   func(context.Context, watch.Interface) watch.Interface
}

var (
	_ precondition.Checker = &restOptionsGetter{}
	_ quota.Checker        = &restOptionsGetter{}
	_ transaction.Guards   = &restOptionsGetter{}
	_ transaction.Prefixes = &restOptionsGetter{}
)

// Check implements precondition.Checker for the namespaced resources.
func (g *restOptionsGetter) Check(ctx context.Context, objects precondition.Objects) (staleAt int64, err error) {
	return g.fence.Check(ctx, objects)
}

// CheckQuotas implements quota.Checker.
func (g *restOptionsGetter) CheckQuotas(ctx context.Context, namespace string, change *quota.Change) (*quota.Denial, error) {
	return g.fence.CheckQuotas(ctx, namespace, change)
}

// CachesNamespaces reports whether Namespaces have a watch cache.
func (g *restOptionsGetter) CachesNamespaces() (bool, error) {
	return g.cached(tenancy.Resource("namespaces"))
}

// CachedPhase returns the phase of a Namespace, and false if it is not in the watch cache.
func (g *restOptionsGetter) CachedPhase(ctx context.Context, name string) (tenancy.NamespacePhase, bool) {
	return g.caches.phase(ctx, name)
}

// Guard implements transaction.Guards.
func (g *restOptionsGetter) Guard(ctx context.Context, name string) (*transaction.Guard, error) {
	return g.fence.Guard(ctx, name)
}

// Prefix implements transaction.Prefixes.
func (g *restOptionsGetter) Prefix(resource schema.GroupResource) (string, error) {
	return g.fence.Prefix(resource)
}

func (g *restOptionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := g.library.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	cached, err := g.cached(resource)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	o.StorageConfig.Codec = untypedCodec{o.StorageConfig.Codec}
	o.Decorator = g.decorator(cached)
	return o, nil
}

// cached reports whether the resource has a watch cache.
func (g *restOptionsGetter) cached(resource schema.GroupResource) (bool, error) {
	if !g.options.EnableWatchCache {
		return false, nil
	}
	sizes, err := options.ParseWatchCacheSizes(g.options.WatchCacheSizes)
	if err != nil {
		return false, err
	}
	size, set := sizes[resource]
	return !set || size > 0, nil
}

// decorator returns the function that creates the store of a resource, with or
// without a watch cache.
func (g *restOptionsGetter) decorator(cached bool) generic.StorageDecorator {
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
		store, remover, destroy, err := g.newStore(config, resourcePrefix, newFunc, newListFunc, cached)
		if err != nil {
			return nil, nil, fmt.Errorf("opening the storage of %s: %w", config.GroupResource, err)
		}
		if !cached {
			return removingStore{g.withHooks(interpretedStore{store}, config.GroupResource), remover}, destroy, nil
		}
		uncached := &progressRequestingStore{Interface: store}
		var cacheable storage.Interface = uncached
		if g.feed != nil && config.GroupResource == tenancy.Resource("namespaces") {
			cacheable = decodedStore{uncached, g.feed.Decoded}
		}
		c, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage:             cacheable,
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
			destroy()
			return nil, nil, fmt.Errorf("creating the watch cache of %s: %w", config.GroupResource, err)
		}
		g.caches.add(config.GroupResource, watchCache{c, resourcePrefix, newListFunc})
		delegator := cacher.NewCacheDelegator(c, uncached)
		var served storage.Interface = delegator
		if writesSeveral(config.GroupResource) {
			served = atomicStore{uncached, delegator}
		}
		return removingStore{g.withHooks(interpretedStore{served}, config.GroupResource), remover}, sync.OnceFunc(func() {
			delegator.Stop()
			c.Stop()
			destroy()
		}), nil
	}
}
