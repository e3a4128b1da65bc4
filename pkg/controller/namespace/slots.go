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
	mu   sync.Mutex
	free int
	// firstRetries and others wait. They take turns: most of the others hang, and would
	// keep a Namespace waiting whose first pass was only too long.
	firstRetries, others line
	othersTurn           bool
}

func newSlots(n int) *slots {
	return &slots{free: n, firstRetries: line{in: sets.New[string]()}, others: line{in: sets.New[string]()}}
}

// acquire takes a slot for a key. If none is free, it returns false, and the key
// waits until next returns it.
func (s *slots) acquire(key string, firstRetry bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.take():
		return true
	case firstRetry:
		s.firstRetries.add(key)
	default:
		s.others.add(key)
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
	if s.free == 0 {
		return "", false
	}
	turn, after := &s.firstRetries, &s.others
	if s.othersTurn {
		turn, after = after, turn
	}
	s.othersTurn = !s.othersTurn
	if key, ok := turn.next(); ok {
		return key, true
	}
	return after.next()
}

// line is a queue of keys, first in, first out. No key is in it twice.
type line struct {
	keys []string
	in   sets.Set[string]
}

func (l *line) add(key string) {
	if !l.in.Has(key) {
		l.in.Insert(key)
		l.keys = append(l.keys, key)
	}
}

func (l *line) next() (key string, ok bool) {
	if len(l.keys) == 0 {
		return "", false
	}
	key, l.keys = l.keys[0], l.keys[1:]
	l.in.Delete(key)
	return key, true
}
