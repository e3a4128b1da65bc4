// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package precondition makes a write conditional on the objects that admission read
// to decide about it.
//
// An admission plugin reads from a cache, which may be out of date. It records the
// objects that it has read in the Attempt in the context of the request. The
// storage adds them as conditions to the transaction that writes: if any of them
// has changed, nothing is written and the attempt is stale. The HTTP handler that
// began the attempt then drops its response and begins another attempt, in which
// reads must be at least as new as the transaction that failed.
package precondition

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects identifies all objects of a resource in a Namespace, as they were read.
type Objects struct {
	Resource  schema.GroupResource
	Namespace string
	// Versions has an entry for each object, sorted by name.
	Versions []Version
}

func (o Objects) equal(other Objects) bool {
	return o.Resource == other.Resource && o.Namespace == other.Namespace && slices.Equal(o.Versions, other.Versions)
}

// Version identifies an object at a revision of etcd, which is its resourceVersion.
type Version struct {
	Name     string
	Revision int64
}

// Checker compares objects that were read with the stored objects.
type Checker interface {
	// Check returns 0 if exactly these objects are stored, and otherwise a revision
	// of etcd at which they were not.
	Check(ctx context.Context, objects Objects) (staleAt int64, err error)
}

// ErrStale is the error of a write in a stale attempt. No client sees it, because
// the response of a stale attempt is dropped.
var ErrStale error = apierrors.NewTooManyRequests("the objects that admission used have changed", 0)

// Attempt is one attempt to handle a request. It is safe for concurrent use. A nil
// attempt, which From returns for a context without one, has no preconditions.
type Attempt struct {
	checker     Checker
	minRevision int64

	mu       sync.Mutex
	required []Objects
	tried    bool
	staleAt  int64
}

type contextKey struct{}

// NewAttempt returns a context with a new attempt. minRevision is the revision at
// which the previous attempt was stale, or 0.
func NewAttempt(ctx context.Context, checker Checker, minRevision int64) (context.Context, *Attempt) {
	attempt := &Attempt{checker: checker, minRevision: minRevision}
	return context.WithValue(ctx, contextKey{}, attempt), attempt
}

// From returns the attempt in the context, or nil.
func From(ctx context.Context) *Attempt {
	attempt, _ := ctx.Value(contextKey{}).(*Attempt)
	return attempt
}

// MinRevision returns the minimum revision of etcd for reads in this attempt, or 0
// if there is no minimum. The request began before that revision.
func (a *Attempt) MinRevision() int64 {
	if a == nil {
		return 0
	}
	return a.minRevision
}

// Require makes the objects a precondition of the writes of the request. After a
// transaction that wrote nothing, because the object had changed, admission decides again,
// and may reject the request: so another transaction, or Verify, has to check them.
func (a *Attempt) Require(objects Objects) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried = false
	if !slices.ContainsFunc(a.required, objects.equal) {
		a.required = append(a.required, objects)
	}
}

// Try returns the preconditions for a transaction that writes. From then on, until the
// next Require, only the transaction decides whether the attempt is stale.
func (a *Attempt) Try() []Objects {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried = true
	return a.required
}

// Fail records that a transaction wrote nothing because a precondition does not
// hold at the revision. It returns ErrStale.
func (a *Attempt) Fail(revision int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.staleAt = revision
	return ErrStale
}

// Check returns 0 if exactly these objects are stored, and otherwise a revision at
// which they were not.
func (a *Attempt) Check(ctx context.Context, objects Objects) (staleAt int64, err error) {
	if a == nil {
		return 0, nil
	}
	return a.checker.Check(ctx, objects)
}

// StaleAt returns the revision at which a transaction found the attempt stale, or 0.
func (a *Attempt) StaleAt() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.staleAt
}

// Verify checks the preconditions of an attempt without a transaction, because the
// request was rejected or is a dry run. It returns a revision at which a
// precondition did not hold, or 0 if all hold or a transaction has decided.
func (a *Attempt) Verify(ctx context.Context) (staleAt int64, err error) {
	a.mu.Lock()
	required, tried := a.required, a.tried
	a.mu.Unlock()
	if tried {
		return 0, nil
	}
	for _, objects := range required {
		if staleAt, err := a.checker.Check(ctx, objects); err != nil || staleAt != 0 {
			return staleAt, err
		}
	}
	return 0, nil
}
