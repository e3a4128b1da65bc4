// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	clients "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

// maxReads is the number of Namespaces whose last read is cached. A cached read is
// used until the watch has caught up; without it a request needs a second attempt.
const maxReads = 1_000

// reads reads the LimitRanges in a Namespace from storage. Requests share reads:
// there is at most one read of a Namespace at a time.
type reads struct {
	client clients.LimitRangesGetter

	mu       sync.Mutex
	inFlight map[string]*read // by Namespace
	last     *lru.Cache       // by Namespace; the last *read without an error
}

// read is one read. done is closed when the other fields are set.
type read struct {
	done     chan struct{}
	found    *inNamespace
	revision int64 // at which they were found
	err      error
}

func newReads() *reads {
	return &reads{inFlight: map[string]*read{}, last: lru.New(maxReads)}
}

// latest returns the LimitRanges of the last read of a Namespace, and its revision,
// which is 0 if there is no cached read.
func (r *reads) latest(namespace string) (found *inNamespace, revision int64) {
	if last, ok := r.last.Get(namespace); ok {
		return last.(*read).found, last.(*read).revision
	}
	return nil, 0
}

// forget drops the cached read of a Namespace if it is not newer than the revision, which the
// watch has reached.
func (r *reads) forget(namespace string, revision int64) {
	if _, readAt := r.latest(namespace); readAt <= revision {
		r.last.Remove(namespace)
	}
}

// notOlderThan returns the LimitRanges in a Namespace at the revision or later.
// Storage must have reached the revision.
func (r *reads) notOlderThan(ctx context.Context, namespace string, revision int64) (*inNamespace, error) {
	for {
		if found, foundAt := r.latest(namespace); foundAt >= revision {
			return found, nil
		}
		current, isNew := r.join(namespace)
		if isNew {
			r.run(ctx, namespace, revision, current)
			return current.found, current.err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the limit ranges of namespace %s: %w", namespace, ctx.Err())
		case <-current.done:
		}
		// This read may have begun before the revision, or the request that began it
		// may have ended. Then try again.
		if err := current.err; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
}

// join returns the read in flight, or a new one, which the caller must run.
func (r *reads) join(namespace string) (current *read, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.inFlight[namespace]; current != nil {
		return current, false
	}
	current = &read{done: make(chan struct{}), err: errors.New("the read did not end")}
	r.inFlight[namespace] = current
	return current, true
}

func (r *reads) run(ctx context.Context, namespace string, revision int64, current *read) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.inFlight, namespace)
		close(current.done)
	}()
	list, err := r.client.LimitRanges(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		current.err = fmt.Errorf("list the limit ranges of namespace %s: %w", namespace, err)
		return
	}
	found := make([]*v1.LimitRange, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
		trimMetadata(found[i])
	}
	slices.SortFunc(found, byName)
	current.found, current.err = newInNamespace(found), nil
	// The list began after the revision, so it is not older.
	current.revision = max(revision, revisionOf(list.ResourceVersion))
	r.last.Add(namespace, current)
}

// revisionOf returns the revision of etcd in a resourceVersion, or -1, which no
// object has, if the resourceVersion is not a number.
func revisionOf(resourceVersion string) int64 {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return -1
	}
	return revision
}
