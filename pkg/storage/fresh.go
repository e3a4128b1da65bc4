// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/metadata"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

// freshStore makes consistent reads from the watch cache quick. Such a read
// fetches etcd's current revision and waits until the cache has come as far.
// After a write to another resource no event brings it there, only a progress
// notification, for which the cache asks every 100 ms. freshStore asks for it at
// once.
type freshStore struct {
	storage.Interface
	// asked is the latest revision for which progress has been asked.
	asked atomic.Int64
}

func (s *freshStore) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	revision, err := s.Interface.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0, err
	}
	if s.first(int64(revision)) {
		// In the background, because it waits as long as the stream is broken.
		go func() {
			if err := s.RequestWatchProgress(cacherContext(ctx)); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).V(4).Info("Asking etcd for watch progress failed", "err", err)
			}
		}()
	}
	return revision, nil
}

// first says whether the revision is a new one. To ask once is enough for all
// reads at a revision: should the answer get lost, which happens while the
// cache's watch is catching up, the cache's own asking remains.
func (s *freshStore) first(revision int64) bool {
	for {
		asked := s.asked.Load()
		if asked >= revision {
			return false
		}
		if s.asked.CompareAndSwap(asked, revision) {
			return true
		}
	}
}

// cacherContext puts on ctx what selects the etcd stream that the cacher's watch
// is on: progress is told per stream.
func cacherContext(ctx context.Context) context.Context {
	if !utilfeature.DefaultFeatureGate.Enabled(features.SeparateCacheWatchRPC) {
		return ctx
	}
	return metadata.NewOutgoingContext(ctx, metadata.Pairs("source", "cache"))
}
