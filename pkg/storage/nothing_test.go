// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/await"
)

var errRead = errors.New("read from etcd")

// unavailableStore cannot be read.
type unavailableStore struct{ storage.Interface }

func (unavailableStore) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return errRead
}

func (unavailableStore) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

// TestListOfNothing lists from a store that cannot be read.
func TestListOfNothing(t *testing.T) {
	for name, test := range map[string]struct {
		selector, revision string
		want               error
	}{
		"contradiction":                  {"a,!a", "0", nil},
		"among others":                   {"!b,x=y,c,b", "0", nil},
		"at the latest revision":         {"a,!a", "", errRead},
		"at a revision":                  {"a,!a", "5", errRead},
		"two labels":                     {"a,!b", "0", errRead},
		"values":                         {"a=1,a!=1", "0", errRead},
		"everything":                     {"", "0", errRead},
		"a label that does not exist":    {"!a", "0", errRead},
		"a label that is required twice": {"a,a", "0", errRead},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := labels.Parse(test.selector)
			if err != nil {
				t.Fatal(err)
			}
			reached := &await.Revision{}
			reached.Reach(7)
			list := &tenancy.PodList{}
			opts := storage.ListOptions{ResourceVersion: test.revision, Predicate: storage.SelectionPredicate{Label: selector}}
			err = nothingStore{unavailableStore{}, reached}.GetList(t.Context(), "/pods/", opts, list)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err == nil && (list.Items == nil || len(list.Items) > 0 || list.ResourceVersion != "7") {
				t.Errorf("got %v, want an empty list at revision 7", list)
			}
		})
	}
	opts := storage.ListOptions{ResourceVersion: "0"}
	if err := (nothingStore{unavailableStore{}, &await.Revision{}}).GetList(t.Context(), "/pods/", opts, &tenancy.PodList{}); !errors.Is(err, errRead) {
		t.Errorf("without a selector: got %v, want %v", err, errRead)
	}
}
