// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apiserver/pkg/storage"
)

// countingStore counts progress requests.
type countingStore struct {
	storage.Interface
	revision uint64
	err      error
	requests chan struct{}
}

func (s *countingStore) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return s.revision, s.err
}

func (s *countingStore) RequestWatchProgress(context.Context) error {
	s.requests <- struct{}{}
	return nil
}

func TestProgressRequestedOnceForEachRevision(t *testing.T) {
	inner := &countingStore{requests: make(chan struct{}, 10)}
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
		<-inner.requests
	}
	if n := len(inner.requests); n != 0 {
		t.Errorf("%d progress requests too many", n)
	}
	inner.err = errors.New("broken")
	if _, err := store.GetCurrentResourceVersion(t.Context()); !errors.Is(err, inner.err) {
		t.Errorf("got %v, want %v", err, inner.err)
	}
}
