// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/test/poll"
)

// TestEndOfManyWatches ends hundreds of watches of quotas at the same time, as a client does
// that is killed, while quotas are written. A watch of another client gets all events, and so
// does one that begins later.
func TestEndOfManyWatches(t *testing.T) {
	const watches, writes, size = 300, 100, 12_000
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		ctx := in(t.Context(), "town")
		from := s.createLargeQuota(t, ctx, "q", size)
		var reading sync.WaitGroup
		// open opens a watch that is read until it is stopped, and counts its events.
		open := func() (watch.Interface, *atomic.Int64) {
			w, err := s.ResourceQuotas.Watch(ctx, from)
			if err != nil {
				t.Fatal(err)
			}
			var events atomic.Int64
			reading.Go(func() {
				for range w.ResultChan() {
					events.Add(1)
				}
			})
			return w, &events
		}
		wantAll := func(name string, events *atomic.Int64) {
			t.Helper()
			poll.Eventually(t, func() string {
				if got := events.Load(); got != writes {
					return fmt.Sprintf("%s got %d events, want %d", name, got, writes)
				}
				return ""
			})
		}

		other, events := open()
		defer reading.Wait()
		defer other.Stop()
		ended := make([]watch.Interface, watches)
		for i := range ended {
			ended[i], _ = open()
		}
		value := string(s.raw(t, largeQuotaKeys+"q"))
		var ending sync.WaitGroup
		for i := range writes {
			if i == writes/2 {
				for _, w := range ended {
					ending.Go(w.Stop)
				}
			}
			if _, err := s.client.Put(ctx, largeQuotaKeys+"q", value); err != nil {
				t.Fatal(err)
			}
		}
		ending.Wait()
		wantAll("a watch", events)
		later, events := open()
		defer later.Stop()
		wantAll("a later watch", events)
	})
}

// TestUnconfirmedWatches ends watches of quotas before etcd has confirmed them, as a request does
// that asks for a format in which there are no watches. Their streams must end.
func TestUnconfirmedWatches(t *testing.T) {
	const watches = 100
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		before := goroutinesIn("/client/v3.(*watchGRPCStream).run(")
		for i := range watches {
			ctx, cancel := context.WithCancel(in(t.Context(), "town"))
			w, err := s.ResourceQuotas.Watch(ctx, &metainternal.ListOptions{ResourceVersion: "1"})
			if err != nil {
				t.Fatal(err)
			}
			for range i * 50 {
				runtime.Gosched() // so that watches end in each of the steps
			}
			cancel()
			w.Stop()
		}
		poll.Eventually(t, func() string {
			if got := goroutinesIn("/client/v3.(*watchGRPCStream).run("); got > before {
				return fmt.Sprintf("%d streams of watches, before %d", got, before)
			}
			return ""
		})
	})
}

// TestCompactedPreviousValue watches from a revision that is compacted up to the change after
// it. Etcd allows the watch, but has no previous value.
func TestCompactedPreviousValue(t *testing.T) {
	onBoth(t, func(o *storage.Options) { o.Etcd.EnableWatchCache = false }, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		created := s.createPod(t, "town", "p")
		const key = "/registry/tenancy.borough.io/pods/town/p"
		changed, err := s.client.Put(t.Context(), key, string(s.raw(t, key)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.Compact(t.Context(), changed.Header.Revision); err != nil {
			t.Fatal(err)
		}
		w, err := s.Pods.Watch(in(t.Context(), "town"), &metainternal.ListOptions{ResourceVersion: created.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := apierrors.FromObject((<-w.ResultChan()).Object); !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v, want Expired", err)
		}
	})
}
