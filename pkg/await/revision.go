// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"sync"
)

// Revision is the revision of etcd that something has reached. It only grows. The zero
// value is usable, and has reached revision 0. It is safe for concurrent use.
type Revision struct {
	mu    sync.Mutex
	value int64
	grown chan struct{} // closed when value grows; nil while no caller waits
}

// Get returns the revision.
func (r *Revision) Get() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// Reach records that a revision was reached.
func (r *Revision) Reach(value int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value <= r.value {
		return
	}
	r.value = value
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// Await waits until a revision is reached, and returns the error of the context if it
// ends before.
func (r *Revision) Await(ctx context.Context, value int64) error {
	for {
		grown := r.until(value)
		if grown == nil {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// until returns nil if a revision is reached, and otherwise a channel that is closed
// when the revision grows.
func (r *Revision) until(value int64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.value >= value {
		return nil
	}
	if r.grown == nil {
		r.grown = make(chan struct{})
	}
	return r.grown
}
