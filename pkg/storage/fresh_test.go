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

// askedStore counts how often it is asked for progress.
type askedStore struct {
	storage.Interface
	revision uint64
	err      error
	asked    chan context.Context
}

func (s *askedStore) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return s.revision, s.err
}

func (s *askedStore) RequestWatchProgress(ctx context.Context) error {
	s.asked <- ctx
	return nil
}

func TestFreshStoreAsksOnceForEachRevision(t *testing.T) {
	inner := &askedStore{asked: make(chan context.Context, 10)}
	fresh := &freshStore{Interface: inner}
	for _, step := range []struct {
		revision uint64
		want     bool
	}{{5, true}, {5, false}, {4, false}, {6, true}, {6, false}} {
		inner.revision = step.revision
		got, err := fresh.GetCurrentResourceVersion(t.Context())
		if err != nil || got != step.revision {
			t.Fatalf("got %d, %v; want %d", got, err, step.revision)
		}
		if !step.want {
			continue
		}
		// The stream is the one of the cache's watch.
		md, _ := metadata.FromOutgoingContext(<-inner.asked)
		separate := utilfeature.DefaultFeatureGate.Enabled(features.SeparateCacheWatchRPC)
		if source := md.Get("source"); separate != slices.Equal(source, []string{"cache"}) {
			t.Errorf("at %d: asked on the stream of %v; it is a separate one: %t", step.revision, md, separate)
		}
	}
	if n := len(inner.asked); n != 0 {
		t.Errorf("asked %d times too often", n)
	}
	inner.err = errors.New("broken")
	if _, err := fresh.GetCurrentResourceVersion(t.Context()); !errors.Is(err, inner.err) {
		t.Errorf("got %v, want %v", err, inner.err)
	}
}
