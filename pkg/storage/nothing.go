// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/await"
)

// nothingStore is a store that does not need etcd, or a watch cache that is ready, for a list of
// which it knows that nothing is in it. With such lists, a server takes part in the deletion of
// namespaces of the cluster (package clusternamespaces), which must not wait for etcd.
type nothingStore struct {
	storage.Interface
	reached *await.Revision
}

// GetList lists objects. If the client accepts any revision, and no object matches the label
// selector, the list is empty, at the latest revision that the server knows of.
func (s nothingStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if opts.ResourceVersion != "0" || !matchesNothing(opts.Predicate.Label) {
		return s.Interface.GetList(ctx, key, opts, list)
	}
	if err := meta.SetList(list, nil); err != nil {
		return fmt.Errorf("make an empty list: %w", err)
	}
	return s.Versioner().UpdateList(list, uint64(s.reached.Get()), "", nil)
}

// matchesNothing reports whether a selector requires that a label exists, and that it does not.
func matchesNothing(selector labels.Selector) bool {
	if selector == nil {
		return false
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return true
	}
	exist, missing := sets.Set[string]{}, sets.Set[string]{}
	for i := range requirements {
		switch requirements[i].Operator() {
		case selection.Exists:
			exist.Insert(requirements[i].Key())
		case selection.DoesNotExist:
			missing.Insert(requirements[i].Key())
		}
	}
	return exist.HasAny(missing.UnsortedList()...)
}
