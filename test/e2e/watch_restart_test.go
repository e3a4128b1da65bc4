// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestInformers watches Pods with an informer, its index and its lister, across a
// restart of the server.
func TestInformers(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	createPod(t, b, ns, newPod("before"))

	factory := externalversions.NewSharedInformerFactory(b.Client(t), 0)
	informer := factory.Tenancy().V1().Pods()
	deleted := make(chan string, 10)
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				deleted <- name
			}
		},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	lister := informer.Lister().Pods(ns)
	if _, err := lister.Get("before"); err != nil {
		t.Errorf("the lister after its sync: %v", err)
	}

	if err := b.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	createPod(t, b, ns, newPod("after"))
	if err := b.Client(t).TenancyV1().Pods(ns).Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		if _, err := lister.Get("after"); err != nil {
			return fmt.Sprintf("the lister after the restart: %v", err)
		}
		return ""
	})
	select {
	case name := <-deleted:
		wantEqual(t, "deleted", name, ns+"/before")
	case <-time.After(eventTimeout):
		t.Error("the informer did not see the deletion")
	}
}

// TestWatchResumes checks that a watch misses no event after a restart of the server. It continues
// from a revision after the start, and gets 410 from one before: the watch cache does not have
// what was between them.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	first := createPod(t, b, ns, newPod("first"))
	createPod(t, b, ns, newPod("second"))
	if err := b.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := createPod(t, b, ns, newPod("third"))
	createPod(t, b, ns, newPod("fourth"))
	pods := b.Client(t).TenancyV1().Pods(ns)
	if err := pods.Delete(t.Context(), "first", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	watchFrom := func(pod *v1.Pod) watch.Interface {
		t.Helper()
		watcher, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watcher.Stop)
		return watcher
	}
	after := watchFrom(third)
	for _, want := range []struct {
		kind watch.EventType
		name string
	}{{watch.Added, "fourth"}, {watch.Modified, "first"}, {watch.Deleted, "first"}} { // a Pod is marked before it is removed
		event := next(t, after.ResultChan())
		pod, ok := event.Object.(*v1.Pod)
		if !ok || event.Type != want.kind || pod.Name != want.name {
			t.Fatalf("got %s of %+v, want %s of %s", event.Type, event.Object, want.kind, want.name)
		}
	}
	event := next(t, watchFrom(first).ResultChan())
	if status, ok := event.Object.(*metav1.Status); !ok || event.Type != watch.Error || status.Code != 410 {
		t.Errorf("from a revision before the start, the watch got %s of %+v, want 410", event.Type, event.Object)
	}
}

// TestWatchEndsWithServer checks that open watches do not delay the end of the
// server.
func TestWatchEndsWithServer(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 10)
	for range cap(ended) {
		response := b.HTTP(t).Open(t, "GET", api+"/pods?watch=1", nil)
		go func() {
			defer response.Body.Close()
			_, err := io.Copy(io.Discard, response.Body)
			ended <- err
		}()
	}
	if err := b.Server.Stop(); err != nil {
		t.Error(err)
	}
	for range cap(ended) {
		if err := <-ended; errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a watch did not end with the server: %v", err)
		}
	}
}

// TestRetryWatcherEnds checks that a RetryWatcher of client-go on what a user sees ends
// when the server does not have the history after its resourceVersion any more. A watch
// that fails without an event it would repeat.
func TestRetryWatcherEnds(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := clientAs(t, b, "alice").TenancyV1()
	list, err := client.Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	newNamespace(t, b) // the history begins later than the list
	if err := b.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"namespaces": client.Namespaces().Watch,
		"projects":   client.Projects().Watch,
	} {
		w, err := toolswatch.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: from})
		if err != nil {
			t.Fatal(err)
		}
		event := next(t, w.ResultChan())
		if status, ok := event.Object.(*metav1.Status); !ok || event.Type != watch.Error || status.Code != http.StatusGone {
			t.Errorf("%s: got %s of %v, want the error 410", name, event.Type, event.Object)
		}
		select {
		case <-w.Done():
		case <-time.After(eventTimeout):
			t.Errorf("%s: the watch does not end", name)
		}
	}
}
