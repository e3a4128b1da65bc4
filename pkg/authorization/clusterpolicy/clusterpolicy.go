// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterpolicy follows the policy of a cluster: the Roles, RoleBindings,
// ClusterRoles and ClusterRoleBindings of its kube-apiserver.
package clusterpolicy

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// Follow calls changed with each object of the policy, and then with each change, until
// the context ends. It returns when changed was called with all objects that there were
// first. It retries until then.
func Follow(ctx context.Context, client kubernetes.Interface, changed func(rbac.Change)) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(strip))
	var synced []cache.InformerSynced
	for _, resource := range rbac.Resources() {
		informer, err := factory.ForResource(resource.WithVersion(rbacv1.SchemeGroupVersion.Version))
		if err != nil {
			return fmt.Errorf("follow %s: %w", resource, err)
		}
		registration, err := informer.Informer().AddEventHandler(handler{resource, changed})
		if err != nil {
			return fmt.Errorf("follow %s: %w", resource, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return context.Cause(ctx)
	}
	return nil
}

// strip removes what decisions do not depend on.
func strip(obj any) (any, error) {
	if object, err := meta.Accessor(obj); err == nil {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	if role, ok := obj.(*rbacv1.ClusterRole); ok {
		// The cluster decides by the rules that its controller has written.
		role.AggregationRule = nil
	}
	return obj, nil
}

// handler handles the changes of one resource.
type handler struct {
	resource schema.GroupResource
	changed  func(rbac.Change)
}

var _ cache.ResourceEventHandler = handler{}

// OnAdd implements cache.ResourceEventHandler.
func (h handler) OnAdd(obj any, _ bool) { h.change(obj, false) }

// OnUpdate implements cache.ResourceEventHandler.
func (h handler) OnUpdate(_, obj any) { h.change(obj, false) }

// OnDelete implements cache.ResourceEventHandler.
func (h handler) OnDelete(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	h.change(obj, true)
}

func (h handler) change(obj any, deleted bool) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return // informers of these resources have only their objects
	}
	change := rbac.Change{Resource: h.resource, Namespace: object.GetNamespace(), Name: object.GetName()}
	if !deleted {
		change.Object = obj.(runtime.Object)
	}
	h.changed(change)
}
