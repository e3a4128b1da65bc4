// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/lru"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	clients "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	listers "github.com/borough-io/borough/pkg/generated/listers/tenancy/v1"
)

const (
	// lookupTTL is how long a Namespace that has no LimitRange in the cache is not
	// looked up again, so that a burst of Pods is not as many lists.
	lookupTTL = time.Second

	// How many Namespaces are remembered to save work.
	maxPrepared = 10_000
	maxLookups  = 10_000
)

// source finds the LimitRanges of a Namespace: in the cache where that can be
// trusted, else in storage.
type source struct {
	cached listers.LimitRangeLister
	stored clients.LimitRangesGetter
	writes *writes

	// By Namespace.
	prepared *lru.Cache            // preparedSet
	lookups  *cache.LRUExpireCache // *limits.Set
}

// preparedSet is a Set with the cached objects that it was made of.
type preparedSet struct {
	limitRanges []*v1.LimitRange
	set         *limits.Set
}

func newSource() *source {
	return &source{
		writes:   newWrites(),
		prepared: lru.New(maxPrepared),
		lookups:  cache.NewLRUExpireCache(maxLookups),
	}
}

// limits returns the LimitRanges that are in force in the Namespace.
func (s *source) limits(ctx context.Context, namespace string) (*limits.Set, error) {
	unseen, written := s.writes.unseen(namespace)
	cached, err := s.cached.LimitRanges(namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the cached limit ranges of namespace %s: %w", namespace, err)
	}
	slices.SortFunc(cached, byName)

	if written {
		stored, err := s.lookUp(ctx, namespace)
		if err != nil {
			return nil, err
		}
		if !slices.EqualFunc(cached, stored, sameVersion) {
			return limits.NewSet(stored), nil
		}
		s.writes.settle(namespace, unseen)
		return s.prepare(namespace, cached), nil
	}
	if len(cached) > 0 {
		return s.prepare(namespace, cached), nil
	}

	if set, found := s.lookups.Get(namespace); found {
		return set.(*limits.Set), nil
	}
	stored, err := s.lookUp(ctx, namespace)
	if err != nil {
		return nil, err
	}
	set := limits.NewSet(stored)
	s.lookups.Add(namespace, set, lookupTTL)
	return set, nil
}

// lookUp reads from storage, sorted by name.
func (s *source) lookUp(ctx context.Context, namespace string) ([]*v1.LimitRange, error) {
	list, err := s.stored.LimitRanges(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the limit ranges of namespace %s: %w", namespace, err)
	}
	stored := make([]*v1.LimitRange, len(list.Items))
	for i := range list.Items {
		stored[i] = &list.Items[i]
	}
	slices.SortFunc(stored, byName)
	return stored, nil
}

// prepare returns the Set of cached objects. The cache replaces an object that
// changes by another, so a Set is good as long as the objects are the same.
func (s *source) prepare(namespace string, cached []*v1.LimitRange) *limits.Set {
	if found, ok := s.prepared.Get(namespace); ok {
		if p := found.(preparedSet); slices.Equal(p.limitRanges, cached) {
			return p.set
		}
	}
	set := limits.NewSet(cached)
	s.prepared.Add(namespace, preparedSet{cached, set})
	return set
}

func byName(a, b *v1.LimitRange) int { return cmp.Compare(a.Name, b.Name) }

func sameVersion(a, b *v1.LimitRange) bool {
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}
