// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"sync/atomic"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

// progressRequestingStore speeds up consistent reads from the watch cache. Such a
// read gets etcd's current revision and waits until the cache has reached it. After
// a write to another resource there is no event at that revision, only a progress
// notification, which the cache requests every 100 ms. progressRequestingStore
// requests it at once.
type progressRequestingStore struct {
	storage.Interface
	// requested is the latest revision for which progress was requested.
	requested atomic.Int64
}

func (s *progressRequestingStore) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	revision, err := s.Interface.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0, err
	}
	if s.firstRequest(int64(revision)) {
		// In the background, because the request blocks while the stream is broken.
		go func() {
			if err := s.RequestWatchProgress(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).V(4).Info("Requesting watch progress from etcd failed", "err", err)
			}
		}()
	}
	return revision, nil
}

// firstRequest reports whether progress has not been requested for the revision.
// One request is enough for all reads at a revision. If etcd does not answer it,
// which happens while the cache's watch is catching up, the cache still sends its
// periodic requests.
func (s *progressRequestingStore) firstRequest(revision int64) bool {
	for {
		requested := s.requested.Load()
		if requested >= revision {
			return false
		}
		if s.requested.CompareAndSwap(requested, revision) {
			return true
		}
	}
}
