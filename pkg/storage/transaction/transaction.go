// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transaction creates a Namespace and an object in it in one transaction of
// etcd.
//
// A store encodes, encrypts and writes one object. So the two creates are nested: the
// create of the Namespace, in a context of With, gets as far as the write to etcd.
// There the client of the store creates the object in the Namespace, and the write of
// that is added to the write of the Namespace. Both creates return the result of the
// one transaction.
package transaction

import (
	"context"
	"errors"

	"go.etcd.io/etcd/client/v3/kubernetes"
)

// Guard is a key that serializes transactions. A transaction with a guard is carried
// out only if the key is still at the revision, and writes it.
type Guard struct {
	Key string
	// Revision is the one that wrote the key last, or 0 if the key does not exist.
	Revision int64
}

// Guards reads guards.
type Guards interface {
	// Guard returns the guard of a name, as it is at the time of the call.
	Guard(ctx context.Context, name string) (*Guard, error)
}

// ErrGuardChanged is the error of a transaction that was not carried out because
// another one with the same guard was.
var ErrGuardChanged = errors.New("another transaction with the same guard was carried out")

// Addition is what is added to the write of a Namespace.
type Addition struct {
	// Key and Value are the object in the Namespace. The key must not exist.
	Key   string
	Value []byte
	// Guard may be nil.
	Guard *Guard
}

type (
	plannedKey  struct{}
	begunKey    struct{}
	additionKey struct{}
)

// planned is a transaction whose Namespace has not been written yet.
type planned struct {
	guard         *Guard
	createContent func(context.Context) error
}

// With returns a context for the create of a Namespace, and for nothing else. When the
// Namespace is written, createContent must create one object in it, with the context
// that it gets. If it returns an error before that, nothing is written. The guard may
// be nil; if it has changed, the create returns ErrGuardChanged.
func With(ctx context.Context, guard *Guard, createContent func(ctx context.Context) error) context.Context {
	return context.WithValue(ctx, plannedKey{}, planned{guard, createContent})
}

// AdditionOf returns what the write of a Namespace with the context has to include, or
// nil.
func AdditionOf(ctx context.Context) *Addition {
	addition, _ := ctx.Value(additionKey{}).(*Addition)
	return addition
}

// begun is a transaction whose Namespace is about to be written.
type begun struct {
	guard *Guard
	put   func(context.Context) (kubernetes.PutResponse, error)

	// done and the result of put are set when the object in the Namespace is written.
	done     bool
	response kubernetes.PutResponse
	err      error
}

// client is a client whose creates are part of the transaction in their context.
type client struct{ kubernetes.Interface }

// NewClient returns a client whose creates are part of the transaction in their
// context, if there is one. All stores of a server need one.
func NewClient(c kubernetes.Interface) kubernetes.Interface { return client{c} }

// OptimisticPut puts a value.
func (c client) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	put := func(ctx context.Context) (kubernetes.PutResponse, error) {
		return c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	}
	if expectedRevision != 0 {
		return put(ctx) // an update
	}
	if tx, ok := ctx.Value(begunKey{}).(*begun); ok {
		return tx.commit(ctx, key, value)
	}
	if plan, ok := ctx.Value(plannedKey{}).(planned); ok {
		return plan.run(ctx, put)
	}
	return put(ctx)
}

// run creates the content of the Namespace that put writes, and with it the Namespace.
func (p planned) run(ctx context.Context, put func(context.Context) (kubernetes.PutResponse, error)) (kubernetes.PutResponse, error) {
	tx := &begun{guard: p.guard, put: put}
	err := p.createContent(context.WithValue(ctx, begunKey{}, tx))
	switch {
	case !tx.done && err == nil:
		return kubernetes.PutResponse{}, errors.New("no object was created in the namespace")
	case !tx.done:
		return kubernetes.PutResponse{}, err
	case tx.err != nil:
		return kubernetes.PutResponse{}, tx.err
	case !tx.response.Succeeded:
		// The Namespace exists. The error says that of the object.
		return tx.response, nil
	}
	// An error is from after the transaction.
	return tx.response, err
}

// commit writes both objects.
func (tx *begun) commit(ctx context.Context, key string, value []byte) (kubernetes.PutResponse, error) {
	if tx.done {
		return kubernetes.PutResponse{}, errors.New("a second object cannot be created in the transaction of a namespace")
	}
	tx.done = true
	tx.response, tx.err = tx.put(context.WithValue(ctx, additionKey{}, &Addition{key, value, tx.guard}))
	return tx.response, tx.err
}
