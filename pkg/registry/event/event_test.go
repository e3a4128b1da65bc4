// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/event"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// newEvents returns the storage of Events that expire after ttl, the context of a request in
// a Namespace, and the etcd.
func newEvents(t *testing.T, ttl time.Duration) (*event.REST, context.Context, *embedded.Server) {
	t.Helper()
	member := storagetest.StartEmbedded(t)
	config := storagetest.NewStandaloneConfig(member)
	backend := storagetest.NewBackend(t, storage.NewOptions(), config)
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
	storagetest.WaitReady(t, events.Store)
	ctx := request.WithNamespace(t.Context(), "")
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := namespaces.Namespace.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return events, request.WithNamespace(t.Context(), "a"), member
}

func newEvent(name string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "a"}}
}

func createEvent(t *testing.T, ctx context.Context, events *event.REST, name string) {
	t.Helper()
	if _, err := events.Create(ctx, newEvent(name), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// stored returns an Event as it is in etcd.
func stored(t *testing.T, ctx context.Context, events *event.REST, member *embedded.Server, name string) *mvccpb.KeyValue {
	t.Helper()
	key, err := events.KeyFunc(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	response, err := member.Client().Get(ctx, "/registry"+key)
	if err != nil || len(response.Kvs) != 1 {
		t.Fatalf("got %v, error %v", response, err)
	}
	return response.Kvs[0]
}

// TestExpiry waits for an Event to expire. Then its Namespace is empty.
func TestExpiry(t *testing.T) {
	events, ctx, _ := newEvents(t, time.Second)
	w, err := events.Watch(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	createEvent(t, ctx, events, "e")
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
	createEvent(t, ctx, events, "e")
	before := stored(t, ctx, events, member, "e").Lease
	changed := newEvent("e")
	changed.Count = 2
	if _, _, err := events.Update(ctx, "e", rest.DefaultUpdatedObjectInfo(changed), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := stored(t, ctx, events, member, "e").Lease; after == 0 || after == before {
		t.Errorf("the lease is %x, after the create it was %x", after, before)
	}
}

// TestResumedWatch continues a watch after the first of several Events that expire together.
// It must get the others.
func TestResumedWatch(t *testing.T) {
	events, ctx, member := newEvents(t, time.Hour)
	client := member.Client()
	lease, err := client.Grant(ctx, 3600)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "y", "z"} {
		createEvent(t, ctx, events, name)
		kv := stored(t, ctx, events, member, name)
		if _, err := client.Put(ctx, string(kv.Key), string(kv.Value), clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := events.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watchFrom := func(revision string) <-chan watch.Event {
		t.Helper()
		w, err := events.Watch(ctx, &metainternalversion.ListOptions{ResourceVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w.ResultChan()
	}
	describe := func(event watch.Event) (name, revision string) {
		t.Helper()
		obj, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(event.Type, " ", obj.GetName()), obj.GetResourceVersion()
	}
	w := watchFrom(list.(*corev1.EventList).ResourceVersion)
	if _, err := client.Revoke(ctx, lease.ID); err != nil { // as etcd does when it expires
		t.Fatal(err)
	}
	_, revision := describe(<-w)
	createEvent(t, ctx, events, "last")
	w = watchFrom(revision)
	for _, want := range []string{"DELETED x", "DELETED y", "DELETED z", "ADDED last"} {
		if got, _ := describe(<-w); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// TestDryRunsAreNotLimited creates more Events in dry runs than are accepted at once.
func TestDryRunsAreNotLimited(t *testing.T) {
	events, ctx, _ := newEvents(t, time.Second)
	dryRun := []string{metav1.DryRunAll}
	for range 600 {
		if _, err := events.Create(ctx, newEvent("e"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun}); err != nil {
			t.Fatal(err)
		}
	}
	createEvent(t, ctx, events, "e")
}
