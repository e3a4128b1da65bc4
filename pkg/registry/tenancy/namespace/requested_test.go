// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

func requestOf(tb testing.TB, user string) context.Context {
	return namespace.WithRequester(request.WithNamespace(tb.Context(), ""), user)
}

// newRequested returns the storage of Namespaces, of which alice has requested three,
// and bob the others.
func newRequested(tb testing.TB, others int, change func(*storage.Options)) *namespace.REST {
	tb.Helper()
	options := storage.NewOptions()
	change(options)
	config := storagetest.NewConfig(storagetest.StartEmbedded(tb))
	backend := storagetest.NewBackend(tb, options, config)
	storage, err := namespace.NewStorage(config.Scheme, backend, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(storage.Namespace.Destroy)
	for user, n := range map[string]int{"alice": 3, "bob": others} {
		for i := range n {
			ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(user, "-", i)}}
			if _, err := storage.Namespace.Create(requestOf(tb, user), ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return storage.Namespace
}

// TestCountRequested counts right after a change, with and without a watch cache.
func TestCountRequested(t *testing.T) {
	for _, cached := range []bool{true, false} {
		t.Run(fmt.Sprint("cached ", cached), func(t *testing.T) {
			namespaces := newRequested(t, 10, func(o *storage.Options) { o.Etcd.EnableWatchCache = cached })
			want := func(user string, want int) {
				t.Helper()
				if got, err := namespaces.CountRequested(t.Context(), user); err != nil || got != want {
					t.Errorf("%s: got %d, %v; want %d", user, got, err, want)
				}
			}
			want("alice", 3)
			want("bob", 10)
			want("carol", 0)
			want("", 0)
			for i := range 20 {
				ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("carol-", i)}}
				if _, err := namespaces.Create(requestOf(t, "carol"), ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				want("carol", i+1)
			}
			// A Terminating Namespace exists.
			if _, _, err := namespaces.Delete(requestOf(t, "alice"), "alice-0", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			want("alice", 3)
		})
	}
}

// BenchmarkCountRequested counts the three Namespaces of a user among those of others.
func BenchmarkCountRequested(b *testing.B) {
	for _, others := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			namespaces := newRequested(b, others, func(*storage.Options) {})
			b.ReportAllocs()
			for b.Loop() {
				if got, err := namespaces.CountRequested(b.Context(), "alice"); err != nil || got != 3 {
					b.Fatalf("got %d, %v", got, err)
				}
			}
		})
	}
}
