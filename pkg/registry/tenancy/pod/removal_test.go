// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestRemovalByAnOutdatedUpdate lets another client remove a Pod and create it again, between
// the update that leaves it without finalizers and its removal. The new Pod stays.
func TestRemovalByAnOutdatedUpdate(t *testing.T) {
	for name, choose := range map[string]func(Storage) (updater, other rest.Updater, store *genericregistry.Store){
		"pods": func(s Storage) (updater, other rest.Updater, store *genericregistry.Store) {
			return s.Pod, s.Status, s.Pod.Store
		},
		"pods/status": func(s Storage) (updater, other rest.Updater, store *genericregistry.Store) {
			return s.Status, s.Pod, s.Status.store
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			updater, other, store := choose(s)
			held := newPod(t, "foo")
			held.Finalizers = []string{"example.com/x"}
			create(t, s, held)
			if _, _, err := s.Pod.Delete(newContext(t), "foo", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Fatal(err)
			}
			release := func(s rest.Updater) {
				t.Helper()
				info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
					pod := old.DeepCopyObject().(*tenancy.Pod)
					pod.Finalizers = nil
					return pod, nil
				})
				if _, _, err := s.Update(newContext(t), "foo", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			store.Storage.Storage = storagetest.BeforeDelete(store.Storage.Storage, func() {
				release(other)
				create(t, s, newPod(t, "foo"))
			})
			release(updater)
			if pod := get(t, s, "foo"); pod.DeletionTimestamp != nil {
				t.Errorf("the new Pod is being deleted: %v", pod.DeletionTimestamp)
			}
		})
	}
}
