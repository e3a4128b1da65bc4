// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import "context"

// exclusiveTurn is a turn of a Namespace for several writes, while no other one is in flight.
type exclusiveTurn struct {
	namespace *namespace
	taken     bool
}

type exclusiveTurnKey struct{}

// withExclusiveTurn returns an exclusive turn that was not taken yet, and the context for the writes in it.
func withExclusiveTurn(ctx context.Context, ns *namespace) (context.Context, *exclusiveTurn) {
	t := &exclusiveTurn{namespace: ns}
	return context.WithValue(ctx, exclusiveTurnKey{}, t), t
}

// hasExclusiveTurn reports whether the write with the context is part of an exclusive turn of the Namespace.
func hasExclusiveTurn(ctx context.Context, ns *namespace) bool {
	t, _ := ctx.Value(exclusiveTurnKey{}).(*exclusiveTurn)
	return t != nil && t.taken && t.namespace == ns
}

// take takes the turn, unless it was taken, and waits until no transaction is in flight.
func (t *exclusiveTurn) take(ctx context.Context) error {
	if t.taken {
		return nil
	}
	if err := t.namespace.take(ctx); err != nil {
		return err
	}
	t.taken = true
	return t.namespace.drain(ctx)
}

// pass gives the turn to the next write, if it was taken.
func (t *exclusiveTurn) pass() {
	if t.taken {
		t.taken = false
		t.namespace.pass()
	}
}

// inExclusiveTurn calls a function in an exclusive turn of the Namespace.
func inExclusiveTurn(ctx context.Context, ns *namespace, write func(ctx context.Context) error) error {
	if hasExclusiveTurn(ctx, ns) {
		return write(ctx)
	}
	ctx, turn := withExclusiveTurn(ctx, ns)
	defer turn.pass()
	if err := turn.take(ctx); err != nil {
		return err
	}
	return write(ctx)
}
