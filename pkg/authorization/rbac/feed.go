// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/tools/cache"
)

// Run keeps the index equal to the policy that the client reads, until the context
// ends.
func (x *Index) Run(ctx context.Context, client rbacclient.RbacV1Interface) {
	var running sync.WaitGroup
	for r, source := range [resources]struct {
		object runtime.Object
		cache.ListWatch
	}{
		roles:               {&rbacv1.Role{}, listWatch(client.Roles(""))},
		roleBindings:        {&rbacv1.RoleBinding{}, listWatch(client.RoleBindings(""))},
		clusterRoles:        {&rbacv1.ClusterRole{}, listWatch(client.ClusterRoles())},
		clusterRoleBindings: {&rbacv1.ClusterRoleBinding{}, listWatch(client.ClusterRoleBindings())},
	} {
		reflector := cache.NewReflectorWithOptions(&source.ListWatch, source.object, feed{x, resource(r)}, cache.ReflectorOptions{
			Name: "rbac-index/" + resource(r).groupResource().Resource,
		})
		running.Go(func() { reflector.RunWithContext(ctx) })
	}
	running.Wait()
}

// listWatch returns the list and the watch of a client of one resource.
func listWatch[L runtime.Object](client interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}) cache.ListWatch {
	return cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: client.Watch,
	}
}

func (r resource) groupResource() schema.GroupResource {
	name := [resources]string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}[r]
	return rbacv1.Resource(name)
}

// feed is the store of the reflector of one resource. It writes to the index.
type feed struct {
	index    *Index
	resource resource
}

var (
	_ cache.ReflectorStore         = feed{}
	_ cache.ReflectorBookmarkStore = feed{}
)

// Add implements cache.ReflectorStore.
func (f feed) Add(obj any) error { return f.update(obj, false) }

// Update implements cache.ReflectorStore.
func (f feed) Update(obj any) error { return f.update(obj, false) }

// Delete implements cache.ReflectorStore.
func (f feed) Delete(obj any) error { return f.update(obj, true) }

// Resync implements cache.ReflectorStore.
func (f feed) Resync() error { return nil }

func (f feed) update(obj any, deleted bool) error {
	object, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("read an object of %s: %w", f.resource.groupResource(), err)
	}
	revision, err := f.revision(object.GetResourceVersion())
	if err != nil {
		return err
	}
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	if deleted {
		obj = nil
	}
	if f.set(objectKey{object.GetNamespace(), object.GetName()}, obj) {
		f.index.aggregate()
	}
	f.index.advance(f.resource, revision)
	f.index.notify()
	return nil
}

// Replace implements cache.ReflectorStore.
func (f feed) Replace(list []any, resourceVersion string) error {
	revision, err := f.revision(resourceVersion)
	if err != nil {
		return err
	}
	listed := make(map[objectKey]any, len(list))
	for _, obj := range list {
		object, err := meta.Accessor(obj)
		if err != nil {
			return fmt.Errorf("read an object of %s: %w", f.resource.groupResource(), err)
		}
		listed[objectKey{object.GetNamespace(), object.GetName()}] = obj
	}
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	for _, key := range f.keys() {
		if _, found := listed[key]; !found {
			f.set(key, nil)
		}
	}
	for key, obj := range listed {
		f.set(key, obj)
	}
	f.index.aggregate()
	f.index.advance(f.resource, revision)
	f.index.notify()
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (f feed) Bookmark(resourceVersion string) error {
	revision, err := f.revision(resourceVersion)
	if err != nil {
		return err
	}
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	f.index.advance(f.resource, revision)
	return nil
}

// revision returns the revision of etcd in a resourceVersion.
func (f feed) revision(resourceVersion string) (uint64, error) {
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read a resourceVersion of %s: %w", f.resource.groupResource(), err)
	}
	return revision, nil
}

// keys returns the keys of the objects of the resource. The lock is held.
func (f feed) keys() []objectKey {
	var keys []objectKey
	add := func(key objectKey) {
		if (key.namespace == "") == (f.resource == clusterRoles || f.resource == clusterRoleBindings) {
			keys = append(keys, key)
		}
	}
	if f.resource == roles || f.resource == clusterRoles {
		for key := range f.index.roles {
			add(key)
		}
	} else {
		for key := range f.index.bindings {
			add(key)
		}
	}
	return keys
}

// set sets an object, or removes it if obj is nil, and reports whether rules have to
// be aggregated again. The lock is held.
func (f feed) set(key objectKey, obj any) (aggregate bool) {
	x := f.index
	switch obj := obj.(type) {
	case *rbacv1.Role:
		x.setRole(key, &role{rules: obj.Rules})
	case *rbacv1.ClusterRole:
		updated := &role{rules: obj.Rules, labels: obj.Labels}
		if obj.AggregationRule != nil {
			updated.selectors, updated.uid, updated.stored = selectors(obj.AggregationRule), obj.UID, obj.Rules
		}
		aggregate = x.affectsAggregation(x.roles[key], updated)
		x.setRole(key, updated)
	case *rbacv1.RoleBinding:
		x.setBinding(key, &binding{key, obj.RoleRef, obj.Subjects})
	case *rbacv1.ClusterRoleBinding:
		x.setBinding(key, &binding{key, obj.RoleRef, obj.Subjects})
	case nil:
		if f.resource == roles || f.resource == clusterRoles {
			aggregate = x.affectsAggregation(x.roles[key], nil)
			x.setRole(key, nil)
		} else {
			x.setBinding(key, nil)
		}
	}
	return aggregate
}

// selectors returns the selectors of an aggregation rule. Validation has accepted
// them; one that cannot be parsed selects nothing.
func selectors(rule *rbacv1.AggregationRule) []labels.Selector {
	selectors := make([]labels.Selector, 0, len(rule.ClusterRoleSelectors))
	for i := range rule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i])
		if err != nil {
			selector = labels.Nothing()
		}
		selectors = append(selectors, selector)
	}
	return selectors
}
