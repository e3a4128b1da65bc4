// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// freshTimeout is how long a request waits for a revision, as with a watch cache of
// the library.
const freshTimeout = 3 * time.Second

// retryAfter is how long a client should wait before it retries, in seconds, as in the
// library.
const retryAfter = 1

// parseRevision returns the revision of a resourceVersion, which is 0 for none. As the
// library, it returns a Timeout with the cause ResourceVersionTooLarge for one that etcd
// never reaches.
func (v *Views) parseRevision(resourceVersion string) (int64, error) {
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if revision > math.MaxInt64 {
		return 0, storage.NewTooLargeResourceVersionError(revision, uint64(v.feed.Revision()), retryAfter)
	}
	return int64(revision), nil
}

// awaitResourceVersion waits until a resourceVersion is reached, and returns its revision. For an
// empty one, it waits for the current revision and returns 0.
func (v *Views) awaitResourceVersion(ctx context.Context, resourceVersion string) (int64, error) {
	if resourceVersion == "" {
		return 0, v.AwaitCurrent(ctx)
	}
	revision, err := v.parseRevision(resourceVersion)
	if err != nil || revision == 0 {
		return 0, err
	}
	return revision, v.awaitRevision(ctx, revision)
}

// awaitRevision waits until a revision is reached. As the library, it returns a Timeout
// with the cause ResourceVersionTooLarge if that takes too long.
func (v *Views) awaitRevision(ctx context.Context, revision int64) error {
	wait, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	if err := v.feed.Await(wait, revision); err != nil {
		return storage.NewTooLargeResourceVersionError(uint64(revision), uint64(v.feed.Revision()), retryAfter)
	}
	return nil
}

// AwaitCurrent waits until the current revision of etcd is reached. It returns a Timeout if
// that takes more than three seconds.
func (v *Views) AwaitCurrent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	revision, err := v.feed.Current(ctx)
	if err != nil {
		return apierrors.NewTimeoutError(fmt.Sprintf("etcd does not answer: %v", err), retryAfter)
	}
	return v.awaitRevision(ctx, revision)
}

func setRevision(obj runtime.Object, revision int64) {
	// The object has metadata, and the revision is not 0.
	_ = storage.APIObjectVersioner{}.UpdateObject(obj, uint64(revision))
}

func revisionOf(obj runtime.Object) int64 {
	// The object has metadata, and the revision was set.
	revision, _ := storage.APIObjectVersioner{}.ObjectResourceVersion(obj)
	return int64(revision)
}
