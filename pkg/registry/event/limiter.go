// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
)

// The limit on the writes of Events in one Namespace, on each server.
const (
	// maxPerSecond is how many a second are accepted in the long run.
	maxPerSecond = 10
	// maxBurst is how many are accepted at once.
	maxBurst = 500

	// maxNamespaces is in how many Namespaces the writes are counted.
	maxNamespaces = 1 << 14
)

// limiter limits the writes in each Namespace.
type limiter struct {
	mu         sync.Mutex
	namespaces *lru.Cache
}

func newLimiter() *limiter { return &limiter{namespaces: lru.New(maxNamespaces)} }

// accept counts a write. It returns TooManyRequests if there were too many before. As in
// Kubernetes, dry runs are not counted.
func (l *limiter) accept(ctx context.Context, dryRun []string) error {
	if dryrun.IsDryRun(dryRun) {
		return nil
	}
	namespace := request.NamespaceValue(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.namespaces.Get(namespace)
	if !ok {
		bucket = flowcontrol.NewTokenBucketRateLimiter(maxPerSecond, maxBurst)
		l.namespaces.Add(namespace, bucket)
	}
	if bucket.(flowcontrol.RateLimiter).TryAccept() {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf("namespace %q has more than %d events per second", namespace, maxPerSecond), 1)
}
