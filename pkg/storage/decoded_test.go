// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/poll"
)

// follower keeps the resource of the last change of a feed.
type follower struct {
	resource atomic.Pointer[changes.Resource]
}

func (f *follower) Reset(_ int64, objects iter.Seq[changes.Change]) {
	for change := range objects {
		f.resource.Store(change.Resource)
	}
}

func (f *follower) Apply(_ int64, changed []changes.Change) {
	f.resource.Store(changed[len(changed)-1].Resource)
}

func (*follower) Advance(int64) {}

// follow returns a function that returns what the feed of a server has decoded.
func (s *server) follow(t *testing.T) (decoded func(name string, revision int64) runtime.Object) {
	t.Helper()
	sink := &follower{}
	s.config.Feed = changes.NewFeed(sink)
	s.config.Followed = []schema.GroupResource{tenancy.Resource("namespaces")}
	s.Stores = storagetest.NewStores(t, s.options, s.config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.config.Feed.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return func(name string, revision int64) runtime.Object {
		if resource := sink.resource.Load(); resource != nil {
			return resource.Decoded(name, revision)
		}
		return nil
	}
}

// TestDecoded checks that a feed gets the objects that the watch cache has, and only at
// their revisions: those that were listed, created, updated and deleted.
func TestDecoded(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "listed")
		decoded := s.follow(t)
		s.createNamespace(t, "created")
		for _, name := range []string{"listed", "created"} {
			first := s.awaitDecoded(t, decoded, name)
			update := first.DeepCopy()
			update.Labels = map[string]string{"a": "b"}
			if _, _, err := s.Namespaces.Update(in(t.Context(), ""), name, rest.DefaultUpdatedObjectInfo(update), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			second := s.awaitDecoded(t, decoded, name)
			poll.Eventually(t, func() string {
				if reflect.ValueOf(second.Labels).Pointer() != reflect.ValueOf(s.cached(t, name).Labels).Pointer() {
					return name + ": the object that is decoded is not that of the watch cache"
				}
				return ""
			})
			if got := decoded(name, revisionOf(t, first)); got != nil {
				t.Errorf("%s: got %v for a revision before", name, got)
			}
			if _, _, err := s.Namespaces.Delete(in(t.Context(), ""), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			poll.Eventually(t, func() string {
				if got := decoded(name, revisionOf(t, second)); got != nil {
					return fmt.Sprintf("%s was deleted: got %v", name, got)
				}
				return ""
			})
		}
	})
}

// TestDecodedWithoutWatchCache checks that nothing is decoded twice for the feed alone.
func TestDecodedWithoutWatchCache(t *testing.T) {
	onBoth(t, func(o *storage.Options) { o.Etcd.EnableWatchCache = false }, func(t *testing.T, s server) {
		decoded := s.follow(t)
		s.createNamespace(t, "ns")
		if err := s.config.Feed.Await(t.Context(), revisionOf(t, s.cached(t, "ns"))); err != nil {
			t.Fatal(err)
		}
		if got := decoded("ns", revisionOf(t, s.cached(t, "ns"))); got != nil {
			t.Errorf("got %v without a watch cache", got)
		}
	})
}

// awaitDecoded waits until the feed gets the object that the watch cache has.
func (s server) awaitDecoded(t *testing.T, decoded func(string, int64) runtime.Object, name string) *tenancy.Namespace {
	t.Helper()
	var found *tenancy.Namespace
	poll.Eventually(t, func() string {
		current, err := s.Namespaces.Get(in(t.Context(), ""), name, &metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var ok bool
		if found, ok = decoded(name, revisionOf(t, current)).(*tenancy.Namespace); !ok || found.Name != name {
			return fmt.Sprintf("%s is not decoded: %v", name, found)
		}
		return ""
	})
	return found
}

// cached returns a Namespace from the watch cache, if there is one.
func (s server) cached(t *testing.T, name string) *tenancy.Namespace {
	t.Helper()
	obj, err := s.Namespaces.Get(in(t.Context(), ""), name, &metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*tenancy.Namespace)
}

func revisionOf(t *testing.T, obj runtime.Object) int64 {
	t.Helper()
	revision, err := strconv.ParseInt(obj.(*tenancy.Namespace).ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}
