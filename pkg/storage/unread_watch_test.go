// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/test/poll"
)

// TestUnreadWatch has watches of quotas that are read only after so many large events that
// most do not fit. Before they are read, nothing of these is kept, and no goroutine of the
// watches is left. Another watch, which is read, gets all.
func TestUnreadWatch(t *testing.T) {
	const size, watches, most = 200_000, 5, 4 << 20
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		ctx := in(t.Context(), "town")
		from := s.createLargeQuota(t, ctx, "q", size)
		open := func() watch.Interface {
			w, err := s.ResourceQuotas.Watch(ctx, from)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		read := open()
		defer read.Stop()
		value, last := string(s.raw(t, largeQuotaKeys+"q")), ""
		write := func(times int) {
			for range times {
				response, err := s.client.Put(ctx, largeQuotaKeys+"q", value)
				if err != nil {
					t.Fatal(err)
				}
				last = fmt.Sprint(response.Header.Revision)
				if got := revision(t, <-read.ResultChan()); got != last {
					t.Fatalf("the watch that is read has revision %s, want %s", got, last)
				}
			}
		}
		write(1)
		goroutines := watchGoroutines()

		unread := make([]watch.Interface, watches)
		for i := range unread {
			unread[i] = open()
		}
		write(100)
		poll.Eventually(t, func() string {
			if now := watchGoroutines(); now > goroutines {
				return fmt.Sprintf("%d goroutines of watches, want %d", now, goroutines)
			}
			return ""
		})
		// etcd keeps the writes in memory, too. So what the watches keep is what is free
		// without them, and some that etcd frees at the same time.
		with := heap()
		for i, w := range unread {
			checkExpired(t, w, last)
			w.Stop()
			unread[i] = nil
		}
		if kept := with - heap(); kept > watches*most {
			t.Errorf("%d watches that were not read kept %d bytes", watches, kept)
		}
	})
}

// TestUnreadInitialObjects has watches of quotas that begin with more large objects than fit, and
// that are read only afterwards: they keep a part of the objects, and then pass all on.
func TestUnreadInitialObjects(t *testing.T) {
	const size, objects, watches, first = 20_000, 1000, 5, "q000"
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		ctx := in(t.Context(), "town")
		s.createLargeQuota(t, ctx, first, size)
		key := largeQuotaKeys + first
		value := string(s.raw(t, key))
		for i := 1; i < objects; i++ { // a Namespace may have fewer quotas
			name := strings.NewReplacer(first, fmt.Sprintf("q%03d", i))
			if _, err := s.client.Put(ctx, name.Replace(key), name.Replace(value)); err != nil {
				t.Fatal(err)
			}
		}
		var unread []watch.Interface
		for range watches {
			w, err := s.ResourceQuotas.Watch(ctx, &metainternal.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			unread = append(unread, w)
		}
		// The library has read what fits when its goroutines wait.
		poll.Eventually(t, func() string {
			if waiting := goroutinesIn("(*watchChan).queueEvent"); waiting < watches {
				return fmt.Sprintf("%d watches have read what fits, want %d", waiting, watches)
			}
			return ""
		})
		with := heap()
		for i, w := range unread {
			for i := range objects {
				event := <-w.ResultChan()
				if quota, ok := event.Object.(*tenancy.ResourceQuota); event.Type != watch.Added || !ok || quota.Name != fmt.Sprintf("q%03d", i) {
					t.Fatalf("got %v %v as number %d, want all objects in order", event.Type, event.Object.GetObjectKind(), i)
				}
			}
			w.Stop()
			unread[i] = nil
		}
		if kept := with - heap(); kept > watches*objects*size/2 {
			t.Errorf("%d watches that were not read kept %d bytes of %d each", watches, kept, objects*size)
		}
	})
}

const largeQuotaKeys = "/registry/tenancy.borough.io/resourcequotas/town/"

// createLargeQuota creates a quota with a size in bytes, and returns the options of a watch from
// then on.
func (s server) createLargeQuota(t *testing.T, ctx context.Context, name string, size int) *metainternal.ListOptions {
	t.Helper()
	created, err := s.ResourceQuotas.Create(ctx, &tenancy.ResourceQuota{ObjectMeta: metav1.ObjectMeta{
		Namespace: "town", Name: name, Annotations: map[string]string{"large": strings.Repeat("x", size)},
	}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &metainternal.ListOptions{ResourceVersion: created.(*tenancy.ResourceQuota).ResourceVersion}
}

// checkExpired checks that a watch ends with the error 410, before the last revision.
func checkExpired(t *testing.T, w watch.Interface, last string) {
	t.Helper()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) {
				t.Errorf("the watch ended with %v, want Expired", err)
			}
			return
		}
		if revision(t, event) == last {
			t.Fatal("the server has kept all events")
		}
	}
	t.Error("the watch ended without an error")
}

// heap returns the size of the objects that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what sync.Pools had
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// watchGoroutines returns how many goroutines the watches from storage have.
func watchGoroutines() int {
	return goroutinesIn("/etcd3.(*watchChan)", "/pkg/storage/etcdwatch.", "/unreadable.(*watcher)")
}

// goroutinesIn returns how many goroutines have one of the functions in their stacks.
func goroutinesIn(functions ...string) int {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if slices.ContainsFunc(functions, func(function string) bool { return strings.Contains(stack, function) }) {
			n++
		}
	}
	return n
}

func revision(t *testing.T, event watch.Event) string {
	t.Helper()
	quota, ok := event.Object.(*tenancy.ResourceQuota)
	if !ok {
		t.Fatalf("got %v %+v", event.Type, event.Object)
	}
	return quota.ResourceVersion
}
