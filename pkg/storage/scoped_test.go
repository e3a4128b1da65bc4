// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// optionsStore keeps the options of the last request.
type optionsStore struct {
	storage.Interface
	opts storage.ListOptions
}

func (s *optionsStore) GetList(_ context.Context, _ string, opts storage.ListOptions, _ runtime.Object) error {
	s.opts = opts
	return nil
}

func (s *optionsStore) Watch(_ context.Context, _ string, opts storage.ListOptions) (watch.Interface, error) {
	s.opts = opts
	return watch.NewEmptyWatch(), nil
}

// TestScopedStore checks that lists and watches use an index only if they are of all Namespaces.
func TestScopedStore(t *testing.T) {
	for key, indexed := range map[string]bool{"/pods": true, "/pods/": true, "/pods/team-a": false, "/pods/team-a/": false, "/pods/team-a/web": false} {
		recorded := &optionsStore{}
		store := scopedStore{recorded, "/pods"}
		opts := storage.ListOptions{Predicate: storage.SelectionPredicate{IndexFields: []string{"spec.nodeName"}}}
		check := func(verb string, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if got := len(recorded.opts.Predicate.IndexFields) > 0; got != indexed {
				t.Errorf("%s %s uses an index: %t", verb, key, got)
			}
		}
		check("list", store.GetList(t.Context(), key, opts, &tenancy.PodList{}))
		_, err := store.Watch(t.Context(), key, opts)
		check("watch", err)
	}
}
