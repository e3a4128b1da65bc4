// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/purge"
)

// Reasons why a termination is stuck.
const (
	// stuckOnContent: content waits for a finalizer or for the end of a Pod.
	stuckOnContent = "content"
	// stuckOnFailure: the last pass failed and is retried.
	stuckOnFailure = "failure"
	// stuckOnFinalizers: the Namespace has finalizers of other agents.
	stuckOnFinalizers = "finalizers"
)

// stuckReasons are all of the above.
var stuckReasons = []string{stuckOnContent, stuckOnFailure, stuckOnFinalizers}

// timestampPrecision is how far a deletionTimestamp, which has whole seconds,
// may be behind the moment of the deletion, with room for the way to here.
const timestampPrecision = 2 * time.Second

// termination is what is known about one Namespace that is being deleted.
type termination struct {
	uid   types.UID
	seen  time.Time // when it was first seen, by the local clock
	start time.Time // when it was deleted, as precisely as known
	stuck string    // empty or one of stuckReasons
	// progress belongs to the worker that is at the Namespace.
	progress *purge.Progress
}

// terminations keeps account of the Namespaces that are being deleted.
type terminations struct {
	mu    sync.Mutex
	byKey map[string]*termination
}

func newTerminations() *terminations {
	return &terminations{byKey: map[string]*termination{}}
}

// observe notes that a Namespace is terminating. One that the informer's first
// list had may have been for long; another was deleted just now.
func (t *terminations) observe(ns *v1.Namespace, initial bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byKey[ns.Name]
	if known == nil || known.uid != ns.UID {
		now := time.Now()
		known = &termination{uid: ns.UID, seen: now, start: now, progress: &purge.Progress{}}
		if deleted := ns.DeletionTimestamp.Time; initial || now.Sub(deleted) > timestampPrecision {
			known.start = deleted
		}
		t.byKey[ns.Name] = known
	}
}

// seen returns when a Namespace was first seen terminating; now, if it was not. The cache can
// have a Namespace before observe is called.
func (t *terminations) seen(key string, uid types.UID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byKey[key]; known != nil && known.uid == uid {
		return known.seen
	}
	return time.Now()
}

// progress returns what is remembered from one pass over a Namespace to the
// next.
func (t *terminations) progress(key string, uid types.UID) *purge.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byKey[key]; known != nil && known.uid == uid {
		return known.progress
	}
	return &purge.Progress{} // it is gone, or not known yet
}

// moved records that content of a Namespace was just removed.
func (t *terminations) moved(key string, uid types.UID) {
	t.progress(key, uid).Moved(time.Now())
}

// stuck notes why a Namespace waits, or an empty reason if it does not.
func (t *terminations) stuck(key string, uid types.UID, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byKey[key]; known != nil && known.uid == uid {
		known.stuck = reason
	}
}

// end forgets a Namespace that is gone and returns how long that took, or false
// if it was not known.
func (t *terminations) end(key string) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byKey[key]
	if known == nil {
		return 0, false
	}
	delete(t.byKey, key)
	return max(0, time.Since(known.start)), true
}

// account returns how many Namespaces are terminating, how many of them are
// stuck by reason, and the age of the oldest termination (0 if there is none).
func (t *terminations) account() (total int, stuck map[string]int, oldest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stuck = map[string]int{}
	for _, known := range t.byKey {
		if known.stuck != "" {
			stuck[known.stuck]++
		}
		oldest = max(oldest, time.Since(known.start))
	}
	return len(t.byKey), stuck, oldest
}
