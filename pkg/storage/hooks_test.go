// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestAwaitWriteFails checks that a write returns 504 if the server does not follow it
// within ten seconds, although it was carried out.
func TestAwaitWriteFails(t *testing.T) {
	config := storagetest.NewConfig(storagetest.StartEmbedded(t))
	config.AwaitWrite = func(ctx context.Context, resource schema.GroupResource, _ int64) error {
		if resource != tenancy.Resource("pods") {
			return nil
		}
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 10*time.Second {
			t.Errorf("the wait ends at %v", deadline)
		}
		return context.DeadlineExceeded
	}
	s := server{Stores: storagetest.NewStores(t, storage.NewOptions(), config)}
	s.createNamespace(t, "n")
	ctx := in(t.Context(), "n")
	want := func(what string, err error) {
		t.Helper()
		if !apierrors.IsTimeout(err) {
			t.Errorf("%s: got %v, want a timeout", what, err)
		}
	}
	get := func() (*tenancy.Pod, error) {
		obj, err := s.Pods.Get(ctx, "p", &metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return obj.(*tenancy.Pod), nil
	}

	_, err := s.Pods.Create(ctx, &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	want("create", err)
	pod, err := get()
	if err != nil {
		t.Fatalf("after the create: %v", err)
	}
	pod = pod.DeepCopy()
	pod.Labels = map[string]string{"new": "label"}
	_, _, err = s.Pods.Update(ctx, "p", rest.DefaultUpdatedObjectInfo(pod), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	want("update", err)
	if pod, err = get(); err != nil || pod.Labels["new"] != "label" {
		t.Errorf("after the update: %v, %v", pod, err)
	}
	_, _, err = s.Pods.Update(ctx, "p", rest.DefaultUpdatedObjectInfo(pod), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	want("update that changes nothing", err)
	_, _, err = s.Pods.Delete(ctx, "p", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	want("delete", err)
	if _, err = get(); !apierrors.IsNotFound(err) {
		t.Errorf("after the delete: got %v, want not found", err)
	}
}
