// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package precondition_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/storage/precondition"
)

// checker finds all objects stale at a revision, or fails.
type checker struct {
	staleAt int64
	err     error
}

func (c checker) Check(context.Context, precondition.Objects) (int64, error) { return c.staleAt, c.err }

func objects(revision int64) precondition.Objects {
	return precondition.Objects{
		Resource:  schema.GroupResource{Resource: "limitranges"},
		Namespace: "town",
		Versions:  []precondition.Version{{Name: "a", Revision: revision}},
	}
}

func TestVerify(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		checker checker
		before  func(*precondition.Attempt)
		staleAt int64
		err     error
	}{
		"nothing required":      {checker{7, broken}, func(*precondition.Attempt) {}, 0, nil},
		"holds":                 {checker{0, nil}, func(a *precondition.Attempt) { a.Require(objects(1)) }, 0, nil},
		"stale":                 {checker{7, nil}, func(a *precondition.Attempt) { a.Require(objects(1)) }, 7, nil},
		"broken":                {checker{0, broken}, func(a *precondition.Attempt) { a.Require(objects(1)) }, 0, broken},
		"left to a transaction": {checker{7, broken}, func(a *precondition.Attempt) { a.Require(objects(1)); a.Try() }, 0, nil},
		"decided again":         {checker{7, nil}, func(a *precondition.Attempt) { a.Require(objects(1)); a.Try(); a.Require(objects(1)) }, 7, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, attempt := precondition.NewAttempt(t.Context(), test.checker, 0)
			test.before(attempt)
			if staleAt, err := attempt.Verify(t.Context()); staleAt != test.staleAt || err != test.err {
				t.Errorf("got %d, %v; want %d, %v", staleAt, err, test.staleAt, test.err)
			}
		})
	}
}

func TestAttempt(t *testing.T) {
	ctx, attempt := precondition.NewAttempt(t.Context(), checker{}, 5)
	if got := precondition.From(ctx); got != attempt || got.MinRevision() != 5 {
		t.Errorf("got %v, not older than %d", got, got.MinRevision())
	}
	attempt.Require(objects(1))
	attempt.Require(objects(1)) // as validation does after defaulting
	attempt.Require(objects(2))
	if got := attempt.Try(); len(got) != 2 {
		t.Errorf("got %v, want each once", got)
	}
	if err := attempt.Fail(9); !errors.Is(err, precondition.ErrStale) || attempt.StaleAt() != 9 {
		t.Errorf("got %v, stale at %d", err, attempt.StaleAt())
	}
}

func TestWithoutAttempt(t *testing.T) {
	none := precondition.From(t.Context())
	none.Require(objects(1))
	if got := none.Try(); got != nil || none.MinRevision() != 0 {
		t.Errorf("got %v, not older than %d", got, none.MinRevision())
	}
	if staleAt, err := none.Check(t.Context(), objects(1)); staleAt != 0 || err != nil {
		t.Errorf("got %d, %v", staleAt, err)
	}
}
