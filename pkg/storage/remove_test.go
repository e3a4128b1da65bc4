// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
)

type remover interface {
	Remove(ctx context.Context, key string, resourceVersion uint64) (removed bool, err error)
}

func TestRemove(t *testing.T) {
	for name, change := range map[string]func(*storage.Options){
		"with watch cache":    func(o *storage.Options) { o.Etcd.StorageConfig.Prefix = "/a/prefix/" },
		"without watch cache": func(o *storage.Options) { o.Etcd.EnableWatchCache = false },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, change, func(t *testing.T, s server) {
				s.createNamespace(t, "a")
				pod := s.createPod(t, "a", "x")
				ctx := in(t.Context(), "a")
				events, err := s.Pods.Watch(ctx, &metainternal.ListOptions{ResourceVersion: pod.ResourceVersion})
				if err != nil {
					t.Fatal(err)
				}
				defer events.Stop()
				remove := func(name, resourceVersion string) bool {
					t.Helper()
					key, err := s.Pods.KeyFunc(ctx, name)
					if err != nil {
						t.Fatal(err)
					}
					revision, err := strconv.ParseUint(resourceVersion, 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					removed, err := s.Pods.Storage.Storage.(remover).Remove(ctx, key, revision)
					if err != nil {
						t.Fatal(err)
					}
					return removed
				}

				if remove("y", pod.ResourceVersion) {
					t.Error("removed what does not exist")
				}
				change := func(obj *tenancy.Pod) { obj.Labels = map[string]string{"new": "label"} }
				changed := s.updatePod(t, "a", "x", change)
				if remove("x", pod.ResourceVersion) {
					t.Error("removed what has changed")
				}
				if _, err := s.Pods.Get(ctx, "x", &metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
				if !remove("x", changed.ResourceVersion) {
					t.Error("did not remove what was there")
				}
				if _, err := s.Pods.Get(ctx, "x", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("got %v, want it not to be found", err)
				}
				for _, want := range []watch.EventType{watch.Modified, watch.Deleted} {
					if got := <-events.ResultChan(); got.Type != want {
						t.Errorf("got the event %s, want %s", got.Type, want)
					}
				}
			})
		})
	}
}

func (s server) updatePod(t *testing.T, namespace, name string, change func(*tenancy.Pod)) *tenancy.Pod {
	t.Helper()
	ctx := in(t.Context(), namespace)
	pod, err := s.Pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod = pod.DeepCopyObject()
	change(pod.(*tenancy.Pod))
	updated, _, err := s.Pods.Update(ctx, name, rest.DefaultUpdatedObjectInfo(pod), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return updated.(*tenancy.Pod)
}
