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
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// newEvents returns the storage of Events that expire after ttl, the context of a request in
// a Namespace, and the etcd.
func newEvents(t *testing.T, ttl time.Duration) (*event.REST, context.Context, *embedded.Server) {
	t.Helper()
	options := storage.NewOptions()
	options.Etcd.EnableWatchCache = false
	member := storagetest.StartEmbedded(t)
	config := storagetest.NewStandaloneConfig(member)
	backend := storagetest.NewBackend(t, options, config)
	namespaces, err := namespace.NewStorage(config.Scheme, backend, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(namespaces.Namespace.Destroy)
	events, err := event.NewREST(config.Scheme, backend, ttl)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Destroy)
	ctx := request.WithNamespace(t.Context(), "")
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := namespaces.Namespace.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return events, request.WithNamespace(t.Context(), "a"), member
}

func newEvent() *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "a"}}
}

// TestExpiry waits for an Event to expire. Then its Namespace is empty.
func TestExpiry(t *testing.T) {
	events, ctx, _ := newEvents(t, time.Second)
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

// TestUpdateExtends checks that an Event expires ttl after it was last written: an update
// gives it another lease.
func TestUpdateExtends(t *testing.T) {
	events, ctx, member := newEvents(t, 19*time.Second) // from 20 seconds, leases are shared
	key, err := events.KeyFunc(ctx, "e")
	if err != nil {
		t.Fatal(err)
	}
	lease := func() int64 {
		t.Helper()
		response, err := member.Client().Get(ctx, "/registry"+key)
		if err != nil || len(response.Kvs) != 1 {
			t.Fatalf("got %v, error %v", response, err)
		}
		return response.Kvs[0].Lease
	}
	if _, err := events.Create(ctx, newEvent(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := lease()
	changed := newEvent()
	changed.Count = 2
	if _, _, err := events.Update(ctx, "e", rest.DefaultUpdatedObjectInfo(changed), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := lease(); after == 0 || after == before {
		t.Errorf("the lease is %x, after the create it was %x", after, before)
	}
}

// TestDryRunsAreNotLimited creates more Events in dry runs than are accepted at once.
func TestDryRunsAreNotLimited(t *testing.T) {
	events, ctx, _ := newEvents(t, time.Second)
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
