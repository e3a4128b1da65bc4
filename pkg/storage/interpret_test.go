// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestTooLarge writes objects that etcd does not take: below the limit of gRPC,
// where etcd rejects them, and above it, where the client does.
func TestTooLarge(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		ctx := in(t.Context(), "town")
		s.createPod(t, "town", "small")
		for _, size := range []int{1600 << 10, 2200 << 10, 2900 << 10} {
			big := strings.Repeat("x", size)
			pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: "town"}, Status: corev1.PodStatus{Message: big}}
			namespace := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Status: tenancy.NamespaceStatus{Phase: tenancy.NamespacePhase(big)}}
			_, createPod := s.Pods.Create(ctx, pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			_, createNamespace := s.Namespaces.Create(in(t.Context(), ""), namespace, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			small, err := s.Pods.Get(ctx, "small", &metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			grown := small.DeepCopyObject().(*tenancy.Pod)
			grown.Status.Message = big
			_, _, update := s.Pods.Update(ctx, "small", rest.DefaultUpdatedObjectInfo(grown), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			for what, err := range map[string]error{"create a Pod": createPod, "create a Namespace": createNamespace, "update": update} {
				if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "etcd") {
					t.Errorf("%s of %d bytes: got %v, want 413", what, size, err)
				}
			}
		}
	})
}

// TestFull writes to an etcd that has reached its quota.
func TestFull(t *testing.T) {
	onBothWithQuota(t, storagetest.SmallQuota, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		old := s.createPod(t, "town", "old")
		storagetest.Fill(t, s.client)

		ctx := in(t.Context(), "town")
		pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "town"}}
		namespace := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		_, createPod := s.Pods.Create(ctx, pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		_, createNamespace := s.Namespaces.Create(in(t.Context(), ""), namespace, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		changed := old.DeepCopy()
		changed.Labels = map[string]string{"a": "b"}
		_, _, update := s.Pods.Update(ctx, "old", rest.DefaultUpdatedObjectInfo(changed), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		for what, err := range map[string]error{"create a Pod": createPod, "create a Namespace": createNamespace, "update": update} {
			var answer apierrors.APIStatus
			if !errors.As(err, &answer) || !tenancyerrors.IsStorageFull(err) {
				t.Errorf("%s: got %v, want that etcd is full", what, err)
				continue
			}
			status := answer.Status()
			if _, retried := apierrors.SuggestsClientDelay(err); status.Code != http.StatusInsufficientStorage || retried || !strings.Contains(status.Message, "delete objects") {
				t.Errorf("%s: got %+v", what, status)
			}
		}
		if _, _, err := s.Pods.Delete(ctx, "old", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
}

// TestBecomesFull writes to an etcd while it reaches its quota. Of the writes that etcd has
// accepted before, it answers some with the error that it is full, and carries them out.
func TestBecomesFull(t *testing.T) {
	onBothWithQuota(t, storagetest.SmallQuota, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		ctx := in(t.Context(), "town")
		const writers = 32
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range 1000 {
					name := fmt.Sprintf("p-%d-%d", w, i)
					pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "town"}, Status: corev1.PodStatus{Message: strings.Repeat("x", 100_000)}}
					_, created := s.Pods.Create(ctx, pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
					if created != nil && !tenancyerrors.IsStorageFull(created) {
						t.Errorf("create: %v", created)
						return
					}
					_, read := s.Pods.Get(ctx, name, &metav1.GetOptions{})
					if created == nil && read != nil || created != nil && !apierrors.IsNotFound(read) {
						t.Errorf("create: %v, and the Pod that is there: %v", created, read)
					}
					if created != nil {
						return
					}
				}
				t.Error("etcd accepts more than its quota")
			})
		}
		wg.Wait()
	})
}

func TestResourceVersionIsNoNumber(t *testing.T) {
	for name, change := range map[string]func(*storage.Options){
		"with a watch cache": nil,
		"without":            func(o *storage.Options) { o.Etcd.EnableWatchCache = false },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, change, func(t *testing.T, s server) {
				s.createNamespace(t, "town")
				s.createPod(t, "town", "p")
				ctx := in(t.Context(), "town")
				for _, version := range []string{"abc", "-1", "1.5", "99999999999999999999999"} {
					_, get := s.Pods.Get(ctx, "p", &metav1.GetOptions{ResourceVersion: version})
					_, list := s.Pods.List(ctx, &metainternal.ListOptions{ResourceVersion: version})
					_, watch := s.Pods.Watch(ctx, &metainternal.ListOptions{ResourceVersion: version})
					for what, err := range map[string]error{"get": get, "list": list, "watch": watch} {
						if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "invalid resource version") {
							t.Errorf("%s at %q: got %v, want 400", what, version, err)
						}
					}
				}
			})
		})
	}
}
