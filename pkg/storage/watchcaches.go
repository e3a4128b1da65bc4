// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// watchCaches are the watch caches of the resources.
type watchCaches struct {
	namespaced []schema.GroupResource

	mu     sync.Mutex
	caches map[schema.GroupResource]watchCache
}

type watchCache struct {
	*cacher.Cacher
	resourcePrefix string
	newListFunc    func() runtime.Object
}

func newWatchCaches(namespaced []schema.GroupResource) *watchCaches {
	return &watchCaches{namespaced: namespaced, caches: map[schema.GroupResource]watchCache{}}
}

func (c *watchCaches) add(resource schema.GroupResource, cache watchCache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caches[resource] = cache
}

// empty reports whether no cache has an object in the Namespace. It returns false if a
// resource has no cache, or one that is not ready. It never reads from etcd.
func (c *watchCaches) empty(ctx context.Context, namespace string) bool {
	for _, resource := range c.namespaced {
		list, err := c.list(ctx, resource, namespace, storage.Everything, 1)
		if err != nil || meta.LenList(list) > 0 {
			return false
		}
	}
	return true
}

// deletedPods returns at most limit Pods in a Namespace that are being deleted, or none if
// the cache is not ready. It never reads from etcd.
func (c *watchCaches) deletedPods(ctx context.Context, namespace string, limit int64) []runtime.Object {
	const field = tenancy.PodBeingDeletedInField
	beingDeleted := storage.Everything
	beingDeleted.Field, beingDeleted.IndexFields = fields.OneTermEqualSelector(field, namespace), []string{field}
	list, err := c.list(ctx, tenancy.Resource("pods"), namespace, beingDeleted, limit)
	if err != nil {
		return nil
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil
	}
	return objects
}

// phase returns the phase of a Namespace, and false if it is not in the cache, or there is
// none. It never reads from etcd.
func (c *watchCaches) phase(ctx context.Context, name string) (tenancy.NamespacePhase, bool) {
	cache, err := c.of(tenancy.Resource("namespaces"))
	if err != nil {
		return "", false
	}
	var namespace tenancy.Namespace
	if err := cache.Get(ctx, cache.resourcePrefix+"/"+name, storage.GetOptions{ResourceVersion: "0"}, &namespace); err != nil {
		return "", false
	}
	return namespace.Status.Phase, true
}

// list returns a list of at most limit objects that a predicate selects, or all with 0.
func (c *watchCaches) list(ctx context.Context, resource schema.GroupResource, namespace string, predicate storage.SelectionPredicate, limit int64) (runtime.Object, error) {
	cache, err := c.of(resource)
	if err != nil {
		return nil, err
	}
	list := cache.newListFunc()
	// With the resourceVersion 0 the cache would ignore the limit.
	options := storage.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Recursive: true, Predicate: predicate}
	options.Predicate.Limit = limit
	return list, cache.GetList(ctx, cache.resourcePrefix+"/"+namespace+"/", options, list)
}

func (c *watchCaches) of(resource schema.GroupResource) (watchCache, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cache, found := c.caches[resource]
	if !found {
		return watchCache{}, fmt.Errorf("%s have no watch cache", resource)
	}
	return cache, nil
}
