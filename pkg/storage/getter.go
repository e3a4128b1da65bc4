// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/storage/fence"
)

// restOptionsGetter gives out the library's RESTOptions with a decorator that
// makes our stores in place of the library's.
type restOptionsGetter struct {
	library     generic.RESTOptionsGetter
	options     options.EtcdOptions
	connections *connections
	fence       *fence.Fence
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
	o.Decorator = g.decorator(cached)
	return o, nil
}

// cached says whether the resource has a watch cache.
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

// decorator returns the function that makes a resource's store, behind a watch
// cache or bare.
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
		store, remover, destroy, err := g.newStore(config, resourcePrefix, newFunc, newListFunc)
		if err != nil {
			return nil, nil, fmt.Errorf("opening the storage of %s: %w", config.GroupResource, err)
		}
		if !cached {
			return removingStore{store, remover}, destroy, nil
		}
		fresh := &freshStore{Interface: store}
		c, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage:             fresh,
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
			return nil, nil, fmt.Errorf("making the watch cache of %s: %w", config.GroupResource, err)
		}
		delegator := cacher.NewCacheDelegator(c, fresh)
		return removingStore{delegator, remover}, sync.OnceFunc(func() {
			delegator.Stop()
			c.Stop()
			destroy()
		}), nil
	}
}
