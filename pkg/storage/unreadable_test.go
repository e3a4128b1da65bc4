// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/pkg/storage/unreadable"
	"github.com/borough-io/borough/test/poll"
)

// damages are ways to make a stored value unreadable.
var damages = map[string]func(value []byte) []byte{
	"flipped": func(value []byte) []byte {
		value = bytes.Clone(value)
		value[0] ^= 0x40
		return value
	},
	"length": func(value []byte) []byte {
		value = bytes.Clone(value)
		value[5] ^= 0x7f // of the type, in the envelope
		return value
	},
	"version": func(value []byte) []byte {
		return bytes.ReplaceAll(value, []byte("tenancy.borough.io/v1"), []byte("tenancy.borough.io/v9"))
	},
	"empty":     func([]byte) []byte { return nil },
	"encrypted": func(value []byte) []byte { return append([]byte("k8s:enc:aesgcm:v1:lost:"), value...) },
	"garbage":   func([]byte) []byte { return []byte("garbage\x00\xff") },
	// The object of another key: of the one that can be read.
	"renamed": func(value []byte) []byte {
		return bytes.ReplaceAll(value, []byte("renamed"), []byte("good\x00\x00\x00"))
	},
	"nameless": func(value []byte) []byte {
		// The field with the name becomes an unknown field.
		return bytes.ReplaceAll(value, []byte("\x0a\x08nameless"), []byte("\x7a\x08nameless"))
	},
}

var flip = damages["flipped"]

func (s server) put(t testing.TB, key string, value []byte) {
	t.Helper()
	if _, err := s.client.Put(t.Context(), key, string(value)); err != nil {
		t.Fatal(err)
	}
}

// cacheModes are the ways to run with a watch cache and without.
var cacheModes = map[string]func(*storage.Options){
	"watch cache":    func(*storage.Options) {},
	"no watch cache": func(o *storage.Options) { o.Etcd.EnableWatchCache = false },
	"no cache size": func(o *storage.Options) {
		o.Etcd.WatchCacheSizes = []string{"pods.tenancy.borough.io#0", "namespaces.tenancy.borough.io#0", "limitranges.tenancy.borough.io#0"}
	},
}

// kind is a kind of stored object.
type kind struct {
	resource, namespace string
	store               func(server) *genericregistry.Store
	new                 func(name string) runtime.Object
}

var kinds = []kind{
	{"namespaces", "", func(s server) *genericregistry.Store { return s.Namespaces }, func(name string) runtime.Object {
		return &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}},
	{"pods", "town", func(s server) *genericregistry.Store { return s.Pods }, func(name string) runtime.Object {
		return &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: name}}
	}},
	{"limitranges", "town", func(s server) *genericregistry.Store { return s.LimitRanges }, func(name string) runtime.Object {
		return &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: name}}
	}},
}

func (k kind) in(ctx context.Context) context.Context { return in(ctx, k.namespace) }

// key is where in etcd an object is.
func (k kind) key(name string) string {
	if k.namespace != "" {
		name = k.namespace + "/" + name
	}
	return "/registry/tenancy.borough.io/" + k.resource + "/" + name
}

func (k kind) create(t testing.TB, s server, obj runtime.Object) {
	t.Helper()
	if _, err := k.store(s).Create(k.in(t.Context()), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// list returns the names in a list, except town.
func (k kind) list(t testing.TB, s server, options metainternal.ListOptions) []string {
	t.Helper()
	list, err := k.store(s).List(k.in(t.Context()), &options)
	if err != nil {
		t.Fatalf("list %s: %v", k.resource, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, item := range items {
		if name := item.(metav1.Object).GetName(); name != "town" {
			names = append(names, name)
		}
	}
	return names
}

// deleteUnsafely deletes an object that cannot be read.
func (k kind) deleteUnsafely(ctx context.Context, s server, name string) error {
	options := &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}
	_, _, err := k.store(s).GetCorruptObjDeleter().Delete(k.in(ctx), name, rest.ValidateAllObjectFunc, options)
	return err
}

// unread returns the names that the server has recorded as unreadable.
func (k kind) unread(s server) []string {
	return s.config.Unreadable.In(tenancy.Resource(k.resource), k.namespace)
}

// reopened returns the stores of another server on the same etcd.
func (s server) reopened(t *testing.T) server {
	t.Helper()
	s.config.Unreadable = unreadable.NewObjects()
	s.Stores = storagetest.NewStores(t, s.options, s.config)
	return s
}

// TestUnreadableBeforeStart starts a server with objects of each kind that cannot be
// read, and shows that all others are available.
func TestUnreadableBeforeStart(t *testing.T) {
	for mode, change := range cacheModes {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, change, func(t *testing.T, s server) {
				s.createNamespace(t, "town")
				for _, k := range kinds {
					k.create(t, s, k.new("good"))
					for name, damage := range damages {
						k.create(t, s, k.new(name))
						s.put(t, k.key(name), damage(s.raw(t, k.key(name))))
					}
				}
				s = s.reopened(t)
				for _, k := range kinds {
					t.Run(k.resource, func(t *testing.T) { testUnreadable(t, s, k) })
				}
			})
		})
	}
}

// testUnreadable calls all verbs on objects that cannot be read, and deletes them.
func testUnreadable(t *testing.T, s server, k kind) {
	ctx, store := k.in(t.Context()), k.store(s)
	everything, err := labels.Parse("!nothing")
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]metainternal.ListOptions{
		"consistent": {}, "any": {ResourceVersion: "0"}, "selected": {LabelSelector: everything}, "page": {Limit: 100},
	} {
		if diff := cmp.Diff([]string{"good"}, k.list(t, s, options)); diff != "" {
			t.Errorf("list %s (-want +got):\n%s", name, diff)
		}
	}
	for name := range damages {
		before := s.raw(t, k.key(name))
		unread := func(verb string, err error) {
			t.Helper()
			if !apierrors.IsStoreReadError(err) || !strings.Contains(err.Error(), k.key(name)) {
				t.Errorf("%s %s: got %v, want an error that names the key", verb, name, err)
			}
			if !bytes.Equal(s.raw(t, k.key(name)), before) {
				t.Fatalf("%s %s has changed what is stored", verb, name)
			}
		}
		_, err := store.Get(ctx, name, &metav1.GetOptions{})
		unread("get", err)
		for _, mayCreate := range []bool{false, true} {
			_, _, err = store.Update(ctx, name, rest.DefaultUpdatedObjectInfo(k.new(name)), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, mayCreate, &metav1.UpdateOptions{})
			unread("update", err)
		}
		_, _, err = store.Delete(ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		unread("delete", err)
		if _, err = store.Create(ctx, k.new(name), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("create %s: got %v, want AlreadyExists", name, err)
		}
		if got := k.unread(s); !slices.Contains(got, name) {
			t.Errorf("%s is not among the noted %v", name, got)
		}

		if err := k.deleteUnsafely(t.Context(), s, name); err != nil {
			t.Fatalf("delete %s unsafely: %v", name, err)
		}
		// An examination that has read it before notes it once more.
		poll.Eventually(t, func() string {
			if got := k.unread(s); slices.Contains(got, name) {
				return fmt.Sprintf("%s, deleted, is among the noted %v", name, got)
			}
			return ""
		})
		if _, err := store.Get(ctx, name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get %s, deleted: %v", name, err)
		}
		k.create(t, s, k.new(name))
	}
	if err := k.deleteUnsafely(t.Context(), s, "good"); !apierrors.IsConflict(err) {
		t.Errorf("deleting unsafely what can be read: got %v, want Conflict", err)
	}
	if got := k.list(t, s, metainternal.ListOptions{}); len(got) != 1+len(damages) {
		t.Errorf("list in the end: %v", got)
	}
}

// seen is an event of a watch.
type seen struct {
	Type        watch.EventType
	Name, Color string
}

// next returns the next event that is not a bookmark.
func next(t *testing.T, w watch.Interface) seen {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch has ended")
			}
			if event.Type == watch.Error {
				t.Fatalf("the watch has failed: %v", apierrors.FromObject(event.Object))
			}
			if event.Type != watch.Bookmark {
				obj := event.Object.(metav1.Object)
				return seen{event.Type, obj.GetName(), obj.GetLabels()["color"]}
			}
		case <-timeout:
			t.Fatal("no event has come")
		}
	}
}

// TestUnreadableWhileWatched makes an object unreadable and readable again during
// watches, with a selector and without.
func TestUnreadableWhileWatched(t *testing.T) {
	for mode, change := range cacheModes {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, change, func(t *testing.T, s server) {
				s.createNamespace(t, "town")
				for _, k := range kinds {
					t.Run(k.resource, func(t *testing.T) { testUnreadableMeanwhile(t, s, k) })
				}
			})
		})
	}
}

func testUnreadableMeanwhile(t *testing.T, s server, k kind) {
	red := labels.Set{"color": "red"}
	newRed := func(name string) runtime.Object {
		obj := k.new(name)
		obj.(metav1.Object).SetLabels(red)
		return obj
	}
	k.create(t, s, newRed("o"))
	before := s.raw(t, k.key("o"))
	list, err := k.store(s).List(k.in(t.Context()), &metainternal.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	start := list.(metav1.ListInterface).GetResourceVersion()
	var watches []watch.Interface
	open := func() {
		for _, selector := range []labels.Selector{nil, labels.SelectorFromSet(red)} {
			w, err := k.store(s).Watch(k.in(t.Context()), &metainternal.ListOptions{ResourceVersion: start, LabelSelector: selector})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			watches = append(watches, w)
		}
	}
	wanted := func(want seen) {
		t.Helper()
		for i, w := range watches {
			if diff := cmp.Diff(want, next(t, w)); diff != "" {
				t.Errorf("watch %d (-want +got):\n%s", i, diff)
			}
		}
	}
	open()
	s.put(t, k.key("o"), flip(before))
	wanted(seen{watch.Deleted, "o", "red"})
	if got := k.list(t, s, metainternal.ListOptions{}); len(got) > 0 {
		t.Errorf("list of what cannot be read: %v", got)
	}
	poll.Eventually(t, func() string {
		if got := k.unread(s); !slices.Equal(got, []string{"o"}) {
			return fmt.Sprintf("noted: %v", got)
		}
		return ""
	})
	s.put(t, k.key("o"), damages["garbage"](before)) // which no watch sees
	s.put(t, k.key("o"), before)
	wanted(seen{watch.Added, "o", "red"})
	if got := k.list(t, s, metainternal.ListOptions{}); !slices.Equal(got, []string{"o"}) {
		t.Errorf("list of what can be read again: %v", got)
	}
	poll.Eventually(t, func() string {
		if got := k.unread(s); len(got) > 0 {
			return fmt.Sprintf("noted, although written again: %v", got)
		}
		return ""
	})
	s.put(t, k.key("o"), flip(before))
	wanted(seen{watch.Deleted, "o", "red"})
	if err := k.deleteUnsafely(t.Context(), s, "o"); err != nil { // which no watch sees
		t.Fatal(err)
	}
	k.create(t, s, newRed("p"))
	wanted(seen{watch.Added, "p", "red"})

	// A watch that starts in the past sees the same.
	watches = nil
	open()
	for _, want := range []seen{{watch.Deleted, "o", "red"}, {watch.Added, "o", "red"}, {watch.Deleted, "o", "red"}, {watch.Added, "p", "red"}} {
		wanted(want)
	}
	if got := k.unread(s); len(got) > 0 {
		t.Errorf("noted in the end: %v", got)
	}
}
