// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// writesSeveral reports whether one transaction can write several objects of the resource:
// all quotas that count an object, the RoleBindings of a template and of the user who has
// requested the Namespace, or Events, of which etcd deletes those of a lease together.
//
// The library assumes that it cannot. Its watch cache has reached a revision with the first
// event of it, so a list can have only some of the objects that the last transaction wrote,
// and a watch that continues there does not get the others.
func writesSeveral(resource schema.GroupResource) bool {
	switch resource {
	case tenancy.Resource("resourcequotas"), rbacv1.Resource("rolebindings"), corev1.Resource("events"):
		return true
	}
	return false
}

// atomicStore is a store whose lists and watches have all or nothing of a transaction. It
// reads from etcd. From the watch cache it takes only lists whose client accepts any
// revision.
type atomicStore struct {
	storage.Interface
	cached storage.Interface
}

// GetList lists objects.
func (s atomicStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if opts.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
		switch opts.ResourceVersion {
		case "0", "1": // a purge asks for 1, with which the cache keeps to a limit
			return s.cached.GetList(ctx, key, opts, list)
		}
	}
	return s.Interface.GetList(ctx, key, opts, list)
}

// Watch watches objects. Bookmarks are etcd's progress notifications.
func (s atomicStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	opts.ProgressNotify = opts.Predicate.AllowWatchBookmarks
	return s.Interface.Watch(unreadable.WithoutCache(ctx), key, opts)
}

// ReadinessCheck returns an error until the watch cache is ready.
func (s atomicStore) ReadinessCheck() error { return s.cached.ReadinessCheck() }
