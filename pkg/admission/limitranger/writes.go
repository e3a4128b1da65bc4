// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"context"
	"sync"

	"k8s.io/utils/lru"
)

// maxUnseen is how many Namespaces are remembered for writes. The one that is
// forgotten is the one longest unused: by the time that so many others have been
// written to, the cache has seen it.
const maxUnseen = 100_000

// writes remembers the Namespaces whose LimitRanges this server has written
// since the cache was last found to be up to date.
type writes struct {
	mu          sync.Mutex
	count       uint64
	byNamespace *lru.Cache // *unseen
}

// unseen is what is known of the writes to one Namespace.
type unseen struct {
	inFlight int    // requests that have not ended
	last     uint64 // number of the last write
}

func newWrites() *writes {
	return &writes{byNamespace: lru.New(maxUnseen)}
}

// begin must be called before a write of the request whose context is ctx. The
// write is over when ctx is done, which is after the request was answered.
func (w *writes) begin(ctx context.Context, namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.get(namespace)
	if u == nil {
		u = &unseen{}
		w.byNamespace.Add(namespace, u)
	}
	w.count++
	u.last = w.count
	u.inFlight++
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		u.inFlight--
	})
}

// unseen returns the writes to the Namespace that the cache may not have seen.
func (w *writes) unseen(namespace string) (unseen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u := w.get(namespace); u != nil {
		return *u, true
	}
	return unseen{}, false
}

// settle forgets writes that the cache was found to have seen. It does not if
// one of them was still in flight when they were asked for, or another has begun
// since.
func (w *writes) settle(namespace string, seen unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u := w.get(namespace); u != nil && seen.inFlight == 0 && u.last == seen.last {
		w.byNamespace.Remove(namespace)
	}
}

func (w *writes) get(namespace string) *unseen {
	if u, found := w.byNamespace.Get(namespace); found {
		return u.(*unseen)
	}
	return nil
}
