// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	tenancyv1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

// newClient returns a client whose first Namespace is team-1.
func newClient() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		action.(clienttesting.CreateAction).GetObject().(*tenancyv1.Namespace).Name = "team-1"
		return false, nil, nil
	})
	return client
}

// TestCleanUp has a request fail, or the context end with it: the Namespace is deleted.
func TestCleanUp(t *testing.T) {
	failed := errors.New("failed")
	for _, tc := range []struct{ verb, resource string }{
		{"create", "limitranges"},
		{"create", "pods"},
		{"delete", "namespaces"},
	} {
		t.Run(tc.verb+" "+tc.resource, func(t *testing.T) {
			client, fails := newClient(), true
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return true, action.(clienttesting.CreateAction).GetObject(), nil
			})
			client.PrependReactor(tc.verb, tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				if !fails {
					return false, nil, nil
				}
				fails = false
				cancel()
				return true, nil, failed
			})
			if err := run(ctx, client); !errors.Is(err, failed) {
				t.Errorf("got %v, want the error of the request", err)
			}
			namespaces, err := client.TenancyV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(namespaces.Items) > 0 {
				t.Errorf("left behind: %v", namespaces.Items)
			}
		})
	}
}

// TestWatchExpires has the watch expire while the Namespace is deleted: the informer finds
// out that the Namespace is gone when it lists again.
func TestWatchExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient()
		client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			pod := action.(clienttesting.CreateAction).GetObject().(*tenancyv1.Pod)
			limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
			pod.Spec.Containers[0].Resources.Limits = limits // as the LimitRange sets them
			return false, nil, nil
		})
		watches := make(chan *watch.RaceFreeFakeWatcher, 2)
		client.PrependWatchReactor("namespaces", func(clienttesting.Action) (bool, watch.Interface, error) {
			w := watch.NewRaceFreeFake()
			watches <- w
			return true, w, nil
		})
		client.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			go func() { // the watch may not have begun
				(<-watches).Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
			}()
			return false, nil, nil
		})
		if err := run(t.Context(), client); err != nil {
			t.Error(err)
		}
	})
}
