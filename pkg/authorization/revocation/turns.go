// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package revocation

import "sync"

// turns limit the decisions about the watches in one namespace to one at a time. A change can
// concern thousands of them, and a decision can take milliseconds: together they would hold
// up all requests.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // of the namespaces with watches
}

// turn is that of a namespace. It is taken by sending to it.
type turn struct {
	taken   chan struct{}
	watches int
}

var decisions = turns{of: map[string]*turn{}}

// enter returns the turn of a namespace, for a watch that has to leave it later.
func (t *turns) enter(namespace string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	entered := t.of[namespace]
	if entered == nil {
		entered = &turn{taken: make(chan struct{}, 1)}
		t.of[namespace] = entered
	}
	entered.watches++
	return entered
}

// leave removes the turn of a namespace that no other watch has entered.
func (t *turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[namespace].watches--; t.of[namespace].watches == 0 {
		delete(t.of, namespace)
	}
}
