// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc/metadata"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// countingStore counts progress requests.
type countingStore struct {
	storage.Interface
	revision uint64
	err      error
	requests chan context.Context
}

func (s *countingStore) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return s.revision, s.err
}

func (s *countingStore) RequestWatchProgress(ctx context.Context) error {
	s.requests <- ctx
	return nil
}

func TestProgressRequestedOnceForEachRevision(t *testing.T) {
	inner := &countingStore{requests: make(chan context.Context, 10)}
	store := &progressRequestingStore{Interface: inner}
	for _, step := range []struct {
		revision uint64
		want     bool
	}{{5, true}, {5, false}, {4, false}, {6, true}, {6, false}} {
		inner.revision = step.revision
		got, err := store.GetCurrentResourceVersion(t.Context())
		if err != nil || got != step.revision {
			t.Fatalf("got %d, %v; want %d", got, err, step.revision)
		}
		if !step.want {
			continue
		}
		// The stream is the one of the cache's watch.
		md, _ := metadata.FromOutgoingContext(<-inner.requests)
		separate := utilfeature.DefaultFeatureGate.Enabled(features.SeparateCacheWatchRPC)
		if source := md.Get("source"); separate != slices.Equal(source, []string{"cache"}) {
			t.Errorf("at %d: progress requested on the stream of %v; the cache has a separate one: %t", step.revision, md, separate)
		}
	}
	if n := len(inner.requests); n != 0 {
		t.Errorf("%d progress requests too many", n)
	}
	inner.err = errors.New("broken")
	if _, err := store.GetCurrentResourceVersion(t.Context()); !errors.Is(err, inner.err) {
		t.Errorf("got %v, want %v", err, inner.err)
	}
}
