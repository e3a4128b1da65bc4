// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	clients "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

const (
	// lookupTTL is how long a Namespace of which the watch has delivered no
	// LimitRange is not looked up again, so that a burst of Pods is not as many
	// lists.
	lookupTTL = time.Second

	// maxLookups is how many such Namespaces are remembered.
	maxLookups = 10_000
)

// source finds the LimitRanges of a Namespace: among what the watch has delivered
// where that can be trusted, else in storage.
type source struct {
	delivered *delivered
	stored    clients.LimitRangesGetter
	writes    *writes
	lookups   *cache.LRUExpireCache // *inNamespace, by Namespace
}

func newSource() *source {
	return &source{
		delivered: newDelivered(),
		writes:    newWrites(),
		lookups:   cache.NewLRUExpireCache(maxLookups),
	}
}

// limits returns the LimitRanges that are in force in the Namespace.
func (s *source) limits(ctx context.Context, namespace string) (*limits.Set, error) {
	known, sure, err := s.known(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if sure || len(known.limitRanges) > 0 {
		return known.set(), nil
	}
	if found, ok := s.lookups.Get(namespace); ok {
		return found.(*inNamespace).set(), nil
	}
	stored, err := s.lookUp(ctx, namespace)
	if err != nil {
		return nil, err
	}
	s.lookups.Add(namespace, stored, lookupTTL)
	return stored.set(), nil
}

// known returns the LimitRanges of the Namespace that have been delivered. If this
// server may have written others since, it is those in storage, which is sure.
func (s *source) known(ctx context.Context, namespace string) (known *inNamespace, sure bool, err error) {
	unseen, written := s.writes.unseen(namespace)
	delivered := s.delivered.in(namespace)
	if !written {
		return delivered, false, nil
	}
	stored, err := s.lookUp(ctx, namespace)
	if err != nil {
		return nil, false, err
	}
	if !slices.EqualFunc(delivered.limitRanges, stored.limitRanges, sameVersion) {
		return stored, true, nil
	}
	s.writes.settle(namespace, unseen)
	s.lookups.Remove(namespace)
	return delivered, true, nil
}

// lookUp reads from storage.
func (s *source) lookUp(ctx context.Context, namespace string) (*inNamespace, error) {
	list, err := s.stored.LimitRanges(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the limit ranges of namespace %s: %w", namespace, err)
	}
	stored := make([]*v1.LimitRange, len(list.Items))
	for i := range list.Items {
		stored[i] = &list.Items[i]
	}
	slices.SortFunc(stored, byName)
	return newInNamespace(stored), nil
}

func sameVersion(a, b *v1.LimitRange) bool {
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}
