// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// emptyStore has no objects.
type emptyStore struct{ storage.Interface }

func (emptyStore) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return nil
}

func (emptyStore) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return watch.NewEmptyWatch(), nil
}

// TestDecodedBeginsAgain checks that objects which were deleted while the cache did not
// watch are forgotten when it begins with all objects: by a list, or by a watch with
// initial events. It is a unit test, because a cache does so only after etcd has compacted
// what it missed.
func TestDecodedBeginsAgain(t *testing.T) {
	list := func(continued string) func(storage.Interface) error {
		return func(s storage.Interface) error {
			options := storage.ListOptions{Predicate: storage.SelectionPredicate{Continue: continued}}
			return s.GetList(t.Context(), "", options, &tenancy.NamespaceList{})
		}
	}
	startWatch := func(initial *bool) func(storage.Interface) error {
		return func(s storage.Interface) error {
			w, err := s.Watch(t.Context(), "", storage.ListOptions{SendInitialEvents: initial})
			if err == nil {
				w.Stop()
			}
			return err
		}
	}
	for name, tc := range map[string]struct {
		begin func(storage.Interface) error
		kept  bool
	}{
		"a list":                      {list(""), false},
		"the next page of a list":     {list("token"), true},
		"a watch with initial events": {startWatch(new(true)), false},
		"a watch that continues":      {startWatch(nil), true},
	} {
		d := &decodedObjects{objects: map[string]runtime.Object{}}
		d.put(&tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", ResourceVersion: "7"}})
		if err := tc.begin(d.store(emptyStore{})); err != nil {
			t.Fatal(err)
		}
		if kept := d.get("ns", 7) != nil; kept != tc.kept {
			t.Errorf("%s: the object is kept: %t, want %t", name, kept, tc.kept)
		}
	}
}
