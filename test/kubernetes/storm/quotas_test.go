// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/replicas"
)

// usage is what the objects in a Namespace use, and what its quotas say.
type usage struct {
	objects map[string]counted           // by key
	quotas  map[string]*v1.ResourceQuota // by key
	// before are the quotas that the revision has changed.
	before map[string]*v1.ResourceQuota
}

// counted is what an object uses.
type counted struct {
	corev1.ResourceList
	// scope is that of a Pod, Terminating or NotTerminating.
	scope corev1.ResourceQuotaScope
}

// count takes an event of the content of a Namespace into account.
func (h *history) count(namespace string, event *clientv3.Event) error {
	u := h.usage[namespace]
	if u == nil {
		u = &usage{objects: map[string]counted{}, quotas: map[string]*v1.ResourceQuota{}, before: map[string]*v1.ResourceQuota{}}
		h.usage[namespace] = u
	}
	key := string(event.Kv.Key)
	h.touched[namespace] = true
	if event.Type == clientv3.EventTypeDelete {
		delete(u.objects, key)
		delete(u.quotas, key)
		return nil
	}
	obj, err := replicas.Decode(event.Kv.Value)
	if err != nil {
		return err
	}
	one := resource.MustParse("1")
	switch obj := obj.(type) {
	case *v1.ResourceQuota:
		u.before[key] = u.quotas[key]
		u.quotas[key] = obj
	case *v1.LimitRange:
		u.objects[key] = counted{ResourceList: corev1.ResourceList{"count/limitranges": one}}
	case *coordinationv1.Lease:
		u.objects[key] = counted{ResourceList: corev1.ResourceList{"count/leases.coordination.k8s.io": one}}
	case *v1.Pod:
		pod := counted{corev1.ResourceList{"count/pods": one}, corev1.ResourceQuotaScopeNotTerminating}
		if obj.Spec.ActiveDeadlineSeconds != nil {
			pod.scope = corev1.ResourceQuotaScopeTerminating
		}
		if obj.Status.Phase != corev1.PodSucceeded && obj.Status.Phase != corev1.PodFailed {
			pod.ResourceList["pods"] = one
			pod.ResourceList["requests.cpu"] = *obj.Spec.Containers[0].Resources.Requests.Cpu()
		}
		u.objects[key] = pod
	}
	return nil
}

// compareQuotas compares the quotas with the objects, in the Namespaces that the last
// revision has written to. Those that are being deleted are not counted.
func (h *history) compareQuotas() {
	for namespace := range h.touched {
		u := h.usage[namespace]
		if ns, exists := h.namespaces[namespace]; exists && !ns.deleting {
			for key, quota := range u.quotas {
				h.compareQuota(key, quota, u)
			}
		}
		clear(u.before)
	}
	clear(h.touched)
}

func (h *history) compareQuota(key string, quota *v1.ResourceQuota, u *usage) {
	if len(quota.Status.Used) == 0 {
		return // not counted yet
	}
	sum := corev1.ResourceList{}
	for _, object := range u.objects {
		if scopes := quota.Spec.Scopes; len(scopes) > 0 && scopes[0] != object.scope {
			continue
		}
		for name, quantity := range object.ResourceList {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	old := u.before[key]
	for name, used := range quota.Status.Used {
		want := sum[name]
		if used.Cmp(want) != 0 {
			h.miscounts = append(h.miscounts, fmt.Sprintf("%d: %s has %s of %s in use, but the objects use %s", h.revision, key, used.String(), name, want.String()))
		}
		if old == nil || len(old.Status.Used) == 0 {
			continue
		}
		hard, was := quota.Spec.Hard[name], old.Status.Used[name]
		if used.Cmp(hard) > 0 && used.Cmp(was) > 0 {
			h.miscounts = append(h.miscounts, fmt.Sprintf("%d: %s grows to %s of %s, beyond %s", h.revision, key, used.String(), name, hard.String()))
		}
	}
	h.compared++
}
