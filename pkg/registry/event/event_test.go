// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/event"
	namespace "github.com/borough-io/borough/pkg/registry/tenancy/namespace/storage"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// newEvents returns the storage of Events, and the context of a request in a Namespace.
func newEvents(t *testing.T) (*event.REST, context.Context) {
	t.Helper()
	options := storage.NewOptions()
	options.Etcd.EnableWatchCache = false
	config := storagetest.NewStandaloneConfig(storagetest.StartEmbedded(t))
	backend := storagetest.NewBackend(t, options, config)
	namespaces, err := namespace.NewStorage(config.Scheme, backend, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(namespaces.Namespace.Destroy)
	events, err := event.NewREST(config.Scheme, backend, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Destroy)
	ctx := request.WithNamespace(t.Context(), "")
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := namespaces.Namespace.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return events, request.WithNamespace(t.Context(), "a")
}

func newEvent() *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "a"}}
}

// TestExpiry waits for an Event to expire. Then its Namespace is empty.
func TestExpiry(t *testing.T) {
	events, ctx := newEvents(t)
	w, err := events.Watch(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := events.Create(ctx, newEvent(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		if got := <-w.ResultChan(); got.Type != want {
			t.Fatalf("got %+v, want %s", got, want)
		}
	}
	list, err := events.List(ctx, &metainternalversion.ListOptions{})
	if err != nil || len(list.(*corev1.EventList).Items) != 0 {
		t.Errorf("got %+v, error %v", list, err)
	}
}

// TestDryRunsAreNotLimited creates more Events in dry runs than are accepted at once.
func TestDryRunsAreNotLimited(t *testing.T) {
	events, ctx := newEvents(t)
	dryRun := []string{metav1.DryRunAll}
	for range 600 {
		if _, err := events.Create(ctx, newEvent(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := events.Create(ctx, newEvent(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
