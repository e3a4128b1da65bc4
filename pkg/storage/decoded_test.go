// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"iter"
	"slices"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
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

// follower keeps what a feed passes on that is decoded.
type follower struct {
	mu      sync.Mutex
	decoded []*tenancy.Namespace
	deleted []*tenancy.Namespace
}

func (*follower) Reset(int64, iter.Seq[changes.Change]) {}

func (*follower) Apply(int64, []changes.Change) {}

func (*follower) Advance(int64) {}

func (f *follower) Decoded(obj runtime.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decoded = append(f.decoded, obj.(*tenancy.Namespace))
}

func (f *follower) Deleted(obj runtime.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted = append(f.deleted, obj.(*tenancy.Namespace))
}

// deletedAt reports whether an object with the name was deleted at a revision.
func (f *follower) deletedAt(name string, revision int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.deleted, func(n *tenancy.Namespace) bool {
		return n.Name == name && n.ResourceVersion == strconv.FormatInt(revision, 10)
	})
}

// at returns the object that was decoded with the name and revision, or nil.
func (f *follower) at(name string, revision int64) *tenancy.Namespace {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.decoded {
		if n.Name == name && n.ResourceVersion == strconv.FormatInt(revision, 10) {
			return n
		}
	}
	return nil
}

// follow opens the stores with a feed, and returns what that gets.
func (s *server) follow(t *testing.T) *follower {
	t.Helper()
	sink := &follower{}
	s.config.Feed = changes.NewFeed(sink)
	s.config.Followed = []schema.GroupResource{tenancy.Resource("namespaces")}
	s.Stores = storagetest.NewStores(t, s.options, s.config)
	return sink
}

// TestDecoded checks that a feed gets the objects that the watch cache has: those that were
// listed, created and updated, and that it gets those that were deleted.
func TestDecoded(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "listed")
		feed := s.follow(t)
		s.createNamespace(t, "created")
		for _, name := range []string{"listed", "created"} {
			s.wantDecoded(t, feed, name)
			update := s.cached(t, name).DeepCopy()
			update.Labels = map[string]string{"a": "b"}
			if _, _, err := s.Namespaces.Update(in(t.Context(), ""), name, rest.DefaultUpdatedObjectInfo(update), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			s.wantDecoded(t, feed, name)
			response, err := s.client.Delete(t.Context(), "/registry/tenancy.borough.io/namespaces/"+name)
			if err != nil {
				t.Fatal(err)
			}
			poll.Eventually(t, func() string {
				if !feed.deletedAt(name, response.Header.Revision) {
					return name + ": not deleted"
				}
				return ""
			})
		}
	})
}

// TestDecodedWithoutWatchCache checks that nothing is decoded for the feed alone.
func TestDecodedWithoutWatchCache(t *testing.T) {
	onBoth(t, func(o *storage.Options) { o.Etcd.EnableWatchCache = false }, func(t *testing.T, s server) {
		feed := s.follow(t)
		s.createNamespace(t, "ns")
		if _, err := s.Namespaces.List(in(t.Context(), ""), &internalversion.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := feed.at("ns", revisionOf(t, s.cached(t, "ns"))); got != nil {
			t.Errorf("got %v without a watch cache", got)
		}
	})
}

// wantDecoded waits until the watch cache has the current version of a Namespace: the
// feed must have been passed the same object.
func (s server) wantDecoded(t *testing.T, feed *follower, name string) {
	t.Helper()
	current, err := s.Namespaces.Get(in(t.Context(), ""), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revision := revisionOf(t, current)
	poll.Eventually(t, func() string {
		cached, decoded := s.cached(t, name), feed.at(name, revision)
		switch {
		case revisionOf(t, cached) != revision:
			return name + ": the watch cache does not have the revision"
		case decoded == nil:
			return name + ": not decoded"
		case unsafe.StringData(decoded.Name) != unsafe.StringData(cached.Name):
			return name + ": the object that is decoded is not that of the watch cache"
		}
		return ""
	})
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
