// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestPodsShareSpecs creates Pods with equal specs: in the watch cache they share one, also
// on a server that starts later, and an update of one Pod changes no other.
func TestPodsShareSpecs(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "ns")
		ctx := in(t.Context(), "ns")
		var last *tenancy.Pod
		for _, name := range []string{"a", "b"} {
			pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "old"}}
			created, err := s.Pods.Create(ctx, pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			last = created.(*tenancy.Pod)
		}
		cached := func(s server) []tenancy.Pod {
			t.Helper()
			list, err := s.Pods.List(ctx, &internalversion.ListOptions{ResourceVersion: last.ResourceVersion})
			if err != nil {
				t.Fatal(err)
			}
			pods := list.(*tenancy.PodList).Items
			if len(pods) != 2 {
				t.Fatalf("got %d Pods", len(pods))
			}
			return pods
		}
		started := s
		started.Stores = storagetest.NewStores(t, s.options, s.config)
		for name, s := range map[string]server{"created": s, "read at the start": started} {
			if pods := cached(s); &pods[0].Spec.Containers[0] != &pods[1].Spec.Containers[0] {
				t.Errorf("equal specs that were %s are not shared", name)
			}
		}

		last.Spec.Containers[0].Image = "new"
		updated, _, err := s.Pods.Update(ctx, "b", rest.DefaultUpdatedObjectInfo(last), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = updated.(*tenancy.Pod)
		for i, want := range []string{"old", "new"} {
			if got := cached(s)[i].Spec.Containers[0].Image; got != want {
				t.Errorf("pod %d has the image %s, want %s", i, got, want)
			}
		}
	})
}
