// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"context"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	clients "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// source returns the LimitRanges in a Namespace: from the index that the watch
// updates, or from storage if the watch is behind.
type source struct {
	index *index
	reads *reads
}

func newSource() *source {
	reads := newReads()
	return &source{index: newIndex(reads.forget), reads: reads}
}

func (s *source) setClient(client clients.LimitRangesGetter) { s.reads.client = client }

// inForce returns the LimitRanges that are in force for the request.
//
// In the first attempt of a request they may be out of date, so they become a
// precondition of its write. If the precondition fails, the next attempt reads the
// LimitRanges at the revision at which it failed. These may be applied even if they
// have changed since, because the request began before that revision, so there are
// at most two attempts.
func (s *source) inForce(ctx context.Context, namespace string) (*inNamespace, error) {
	attempt := precondition.From(ctx)
	if revision := attempt.MinRevision(); revision != 0 {
		return s.reads.notOlderThan(ctx, namespace, revision)
	}
	cached := s.cached(namespace)
	attempt.Require(cached.objects(namespace))
	return cached, nil
}

// cached returns the newest LimitRanges that are available without a read.
func (s *source) cached(namespace string) *inNamespace {
	indexed, revision := s.index.in(namespace)
	if read, readAt := s.reads.latest(namespace); readAt > revision {
		return read
	}
	return indexed
}

// current returns the LimitRanges in storage. It reads them only if the cached ones
// are out of date.
func (s *source) current(ctx context.Context, namespace string) (*inNamespace, error) {
	cached := s.cached(namespace)
	staleAt, err := precondition.From(ctx).Check(ctx, cached.objects(namespace))
	if err != nil || staleAt == 0 {
		return cached, err
	}
	return s.reads.notOlderThan(ctx, namespace, staleAt)
}

func (n *inNamespace) objects(namespace string) precondition.Objects {
	return precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: namespace, Versions: n.versions}
}
