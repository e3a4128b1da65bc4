// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"

	"github.com/borough-io/borough/pkg/apis/tenancy"
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
		list, err := c.list(ctx, resource, namespace, 1)
		if err != nil || meta.LenList(list) > 0 {
			return false
		}
	}
	return true
}

// pods returns the Pods in a Namespace, or none if the cache is not ready. It never
// reads from etcd.
func (c *contentCaches) pods(ctx context.Context, namespace string) []runtime.Object {
	list, err := c.list(ctx, tenancy.Resource("pods"), namespace, 0)
	if err != nil {
		return nil
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil
	}
	return objects
}

// list returns a list of at most limit objects, or all with 0.
func (c *contentCaches) list(ctx context.Context, resource schema.GroupResource, namespace string, limit int64) (runtime.Object, error) {
	c.mu.Lock()
	cache, found := c.caches[resource]
	c.mu.Unlock()
	if !found {
		return nil, fmt.Errorf("%s have no watch cache", resource)
	}
	list := cache.newListFunc()
	options := storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: storage.Everything}
	options.Predicate.Limit = limit
	return list, cache.GetList(ctx, cache.resourcePrefix+"/"+namespace+"/", options, list)
}
