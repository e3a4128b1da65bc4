// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// history is the content of the Namespaces at a revision of etcd.
type history struct {
	codecs  map[string]runtime.Codec
	objects map[string]runtime.Object // by key

	revisions, compared, charges int
}

func newHistory(t *testing.T, server storagetest.Stores) *history {
	t.Helper()
	h := &history{codecs: map[string]runtime.Codec{}, objects: map[string]runtime.Object{}}
	for _, kind := range tenancy.NamespacedKinds() {
		options, err := server.Backend.GetRESTOptions(kind.GroupResource(), nil)
		if err != nil {
			t.Fatal(err)
		}
		h.codecs[kind.Resource] = options.StorageConfig.Codec
	}
	return h
}

// replay goes through all revisions and reports violations.
func (h *history) replay(t *testing.T, client *clientv3.Client) {
	t.Helper()
	now, err := client.Get(t.Context(), "now")
	if err != nil {
		t.Fatal(err)
	}
	watch := client.Watch(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithProgressNotify())
	var events []*clientv3.Event
	for len(events) == 0 || events[len(events)-1].Kv.ModRevision < now.Header.Revision {
		response, open := <-watch
		if err := response.Err(); err != nil || !open {
			t.Fatalf("the watch has ended: %v", err)
		}
		events = append(events, response.Events...)
	}
	for len(events) > 0 {
		revision := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision != revision })
		if n < 0 {
			n = len(events)
		}
		if err := h.apply(events[:n]); err != nil {
			t.Errorf("revision %d: %v", revision, err)
		}
		events = events[n:]
	}
}

// apply applies the events of one revision, and returns an error if a quota is wrong then.
func (h *history) apply(events []*clientv3.Event) error {
	h.revisions++
	before := map[string]*tenancy.ResourceQuota{}
	for _, e := range events {
		key := string(e.Kv.Key)
		resource, _, _, ok := keyOf(key)
		if !ok {
			continue
		}
		if quota, ok := h.objects[key].(*tenancy.ResourceQuota); ok {
			before[key] = quota
		}
		if e.Type == clientv3.EventTypeDelete {
			delete(h.objects, key)
			continue
		}
		obj, err := runtime.Decode(h.codecs[resource], e.Kv.Value)
		if err != nil {
			return err
		}
		h.objects[key] = obj
	}
	for key, obj := range h.objects {
		quota, ok := obj.(*tenancy.ResourceQuota)
		if !ok || len(quota.Status.Used) == 0 {
			continue
		}
		h.compared++
		_, namespace, _, _ := keyOf(key)
		if sum := h.sum(namespace, quota); !quotav1.Equals(sum, quota.Status.Used) {
			return fmt.Errorf("%s has the usage %v, but the objects use %v", key, texts(quota.Status.Used), texts(sum))
		}
		if old := before[key]; old != nil && len(old.Status.Used) > 0 {
			h.charges++
			for name, used := range quota.Status.Used {
				was, hard := old.Status.Used[name], quota.Status.Hard[name]
				if used.Cmp(was) > 0 && used.Cmp(hard) > 0 {
					return fmt.Errorf("%s grows to %s of %s, beyond %s", key, used.String(), name, hard.String())
				}
			}
		}
	}
	return nil
}

// sum returns what the objects use of a quota. It is computed apart from package quota.
func (h *history) sum(namespace string, quota *tenancy.ResourceQuota) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for name := range quota.Status.Hard {
		sum[name] = resource.Quantity{}
	}
	add := func(name corev1.ResourceName, quantity resource.Quantity) {
		if total, limited := sum[name]; limited {
			total.Add(quantity)
			sum[name] = total
		}
	}
	one := resource.MustParse("1")
	scoped := len(quota.Spec.Scopes) > 0
	for key, obj := range h.objects {
		_, ns, _, _ := keyOf(key)
		if ns != namespace {
			continue
		}
		switch obj := obj.(type) {
		case *tenancy.LimitRange:
			if !scoped {
				add("count/limitranges", one)
			}
		case *tenancy.ResourceQuota:
			if !scoped {
				add("count/resourcequotas", one)
			}
		case *tenancy.Pod:
			if scoped && obj.Spec.ActiveDeadlineSeconds == nil {
				continue
			}
			add("count/pods", one)
			if obj.Status.Phase != corev1.PodSucceeded && obj.Status.Phase != corev1.PodFailed {
				add("pods", one)
				add("requests.cpu", obj.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU])
			}
		}
	}
	return sum
}

func texts(list corev1.ResourceList) map[corev1.ResourceName]string {
	texts := map[corev1.ResourceName]string{}
	for name, quantity := range list {
		texts[name] = quantity.String()
	}
	return texts
}
