// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// slots bounds how many workers are busy with passes that may take long. The keys
// that wait for a slot are not in the work queue, so they keep no worker busy.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []string         // first in, first out
	in      sets.Set[string] // waiting
}

// acquire takes a slot for a key. If none is free, it returns false, and the key
// waits until next returns it.
func (s *slots) acquire(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.take() {
		return true
	}
	if !s.in.Has(key) {
		s.in.Insert(key)
		s.waiting = append(s.waiting, key)
	}
	return false
}

// tryAcquire takes a slot if one is free.
func (s *slots) tryAcquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take()
}

// take takes a slot if one is free. The lock is held.
func (s *slots) take() bool {
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

// release returns a slot.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
}

// next returns a key that has waited, if there is a slot for it. It has to be
// called at the end of each pass: a key that was returned may no longer need the
// slot when it is processed.
func (s *slots) next() (key string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 || len(s.waiting) == 0 {
		return "", false
	}
	key, s.waiting = s.waiting[0], s.waiting[1:]
	s.in.Delete(key)
	return key, true
}
