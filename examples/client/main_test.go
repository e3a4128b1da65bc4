// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// TestWatchExpires has the watch expire while the Namespace is deleted: the informer finds
// out that the Namespace is gone when it lists again.
func TestWatchExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
			action.(clienttesting.CreateAction).GetObject().(*tenancyv1.Namespace).Name = "team-1"
			return false, nil, nil
		})
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
