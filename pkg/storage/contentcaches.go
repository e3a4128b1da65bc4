// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
)

// contentCaches are the watch caches of the namespaced resources.
type contentCaches struct {
	namespaced []schema.GroupResource

	mu     sync.Mutex
	caches map[schema.GroupResource]contentCache
}

type contentCache struct {
	*cacher.Cacher
	resourcePrefix string
	newListFunc    func() runtime.Object
}

func newContentCaches(namespaced []schema.GroupResource) *contentCaches {
	return &contentCaches{namespaced: namespaced, caches: map[schema.GroupResource]contentCache{}}
}

func (c *contentCaches) add(resource schema.GroupResource, cache contentCache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caches[resource] = cache
}

// empty reports whether no cache has an object in the Namespace. It returns false if a
// resource has no cache, or one that is not ready. It never reads from etcd.
func (c *contentCaches) empty(ctx context.Context, namespace string) bool {
	for _, resource := range c.namespaced {
		c.mu.Lock()
		cache, found := c.caches[resource]
		c.mu.Unlock()
		if !found {
			return false
		}
		list := cache.newListFunc()
		options := storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: storage.Everything}
		options.Predicate.Limit = 1
		if err := cache.GetList(ctx, cache.resourcePrefix+"/"+namespace+"/", options, list); err != nil || meta.LenList(list) > 0 {
			return false
		}
	}
	return true
}
