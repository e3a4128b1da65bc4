// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import "context"

// turn is a turn of a Namespace, alone, for several writes.
type turn struct {
	namespace *namespace
	taken     bool
}

type turnKey struct{}

// withTurn returns a turn that was not taken yet, and the context for the writes in it.
func withTurn(ctx context.Context, ns *namespace) (context.Context, *turn) {
	t := &turn{namespace: ns}
	return context.WithValue(ctx, turnKey{}, t), t
}

// hasTurn reports whether the write with the context is part of a turn of the Namespace.
func hasTurn(ctx context.Context, ns *namespace) bool {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t != nil && t.taken && t.namespace == ns
}

// take takes the turn, unless it was taken, and waits until no transaction is in flight.
func (t *turn) take(ctx context.Context) error {
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
func (t *turn) pass() {
	if t.taken {
		t.taken = false
		t.namespace.pass()
	}
}

// inTurn calls a function in a turn of the Namespace, alone.
func inTurn(ctx context.Context, ns *namespace, write func(ctx context.Context) error) error {
	if hasTurn(ctx, ns) {
		return write(ctx)
	}
	ctx, turn := withTurn(ctx, ns)
	defer turn.pass()
	if err := turn.take(ctx); err != nil {
		return err
	}
	return write(ctx)
}
