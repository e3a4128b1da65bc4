// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transaction creates a Namespace and objects in it in one transaction of etcd.
//
// A store encodes, encrypts and writes one object. So the creates are nested: the
// create of the Namespace, in a context of With, gets as far as the write to etcd.
// There the client of the store creates the first object in the Namespace, whose write
// creates the second, and so on. The write of the last one writes all. All creates
// return the result of the one transaction.
package transaction

import (
	"context"
	"errors"
	"slices"

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

// Condition is that the objects that the plan of a transaction depends on have not
// changed. A transaction with a condition is carried out only if the condition holds.
type Condition struct {
	// Prefix is that of the keys of all objects that may matter. None of them was
	// written after Revision.
	Prefix   string
	Revision int64
	// Key, unless it is empty, is still at KeyRevision: the other comparison does not
	// notice that it was deleted.
	Key         string
	KeyRevision int64
}

// ErrConditionChanged is the error of a transaction that was not carried out because
// its condition does not hold. With plans the transaction again.
var ErrConditionChanged = errors.New("the objects that the plan of the transaction depends on have changed")

// Plan is what a transaction has besides the Namespace.
type Plan struct {
	// Creates each create one object in the Namespace, with the context that they get.
	// If one returns an error before that, nothing is written, and the error is that of
	// the Namespace.
	Creates []func(ctx context.Context) error
	// Explain, unless it is nil, returns this error with what the plan is from.
	Explain func(error) error
	// Provisional means that the plan was made by what may be out of date. If it, or one
	// of its creates, is an error, the transaction is planned again.
	Provisional bool
	// Guard may be nil. If it has changed, the create of the Namespace returns
	// ErrGuardChanged.
	Guard *Guard
	// Condition may be nil. If it does not hold, the transaction is planned again, unless
	// Renew returns another one.
	Condition *Condition
	// Renew, unless it is nil, returns a condition by what is stored, or nil if the plan
	// has to be another one. Planning may take longer than the condition holds.
	Renew func(ctx context.Context) (*Condition, error)
}

// Planner returns the plan of a transaction. It is called when the Namespace is about
// to be written, and again each time that the transaction is planned again.
type Planner func(ctx context.Context) (Plan, error)

// Addition is what is added to the write of a Namespace.
type Addition struct {
	Objects    []Object
	Guards     []*Guard
	Conditions []*Condition
}

// Object is an object in the Namespace. Its key must not exist.
type Object struct {
	Key   string
	Value []byte
}

type (
	plannersKey struct{}
	begunKey    struct{}
	additionKey struct{}
)

// With returns a context for the create of a Namespace, and for nothing else, whose
// transaction has what the planner plans, and what those of other calls do.
func With(ctx context.Context, planner Planner) context.Context {
	planners, _ := ctx.Value(plannersKey{}).([]Planner)
	return context.WithValue(ctx, plannersKey{}, append(slices.Clip(planners), planner))
}

// AdditionOf returns what the write of a Namespace with the context has to include, or
// nil.
func AdditionOf(ctx context.Context) *Addition {
	addition, _ := ctx.Value(additionKey{}).(*Addition)
	return addition
}

// client is a client whose creates are part of the transaction in their context.
type client struct {
	kubernetes.Interface
	check func(Object) error
}

// NewClient returns a client whose creates are part of the transaction in their
// context, if there is one. All stores of a server need one. The check, which may be nil,
// refuses objects in transactions.
func NewClient(c kubernetes.Interface, check func(Object) error) kubernetes.Interface {
	return client{c, check}
}

// OptimisticPut puts a value.
func (c client) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	put := func(ctx context.Context) (kubernetes.PutResponse, error) {
		return c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	}
	if expectedRevision != 0 {
		return put(ctx) // an update
	}
	if tx, ok := ctx.Value(begunKey{}).(*begun); ok {
		object := Object{key, value}
		if c.check != nil {
			if err := c.check(object); err != nil {
				return kubernetes.PutResponse{}, err
			}
		}
		return tx.add(object)
	}
	planners, ok := ctx.Value(plannersKey{}).([]Planner)
	if !ok {
		return put(ctx)
	}
	for {
		tx := &begun{put: put}
		err := tx.run(ctx, planners)
		switch {
		case !tx.done && tx.provisional:
			continue
		case !tx.done:
			return c.refused(ctx, key, tx.refusal)
		case errors.Is(tx.err, ErrConditionChanged):
			continue
		case tx.err != nil || !tx.response.Succeeded:
			// If the Namespace exists, err says that of an object.
			return tx.response, tx.err
		}
		return tx.response, err // an error from after the transaction
	}
}

// refused returns the result of a transaction that was not tried.
func (c client) refused(ctx context.Context, key string, reason error) (kubernetes.PutResponse, error) {
	// That the Namespace exists is the first reason, as for one without objects.
	if existing, err := c.Get(ctx, key, kubernetes.GetOptions{}); err == nil && existing.KV != nil {
		return kubernetes.PutResponse{KV: existing.KV, Revision: existing.Revision}, nil
	}
	return kubernetes.PutResponse{}, reason
}

// begun is a transaction whose Namespace is about to be written.
type begun struct {
	// ctx is that of the Namespace. The contexts of the nested creates are of no use to
	// each other.
	ctx      context.Context
	put      func(context.Context) (kubernetes.PutResponse, error)
	creates  []create // that have not been called
	addition Addition
	renew    []func(context.Context) (*Condition, error) // of the conditions

	// refusal is why nothing can be written.
	refusal     error
	provisional bool

	// done and the result of put are set when all is written.
	done     bool
	response kubernetes.PutResponse
	err      error
}

// create creates an object.
type create struct {
	do      func(context.Context) error
	explain func(error) error
}

// run plans a transaction, creates its objects, and with them the Namespace that put
// writes. Once that is done, an error is put's, or from after it.
func (tx *begun) run(ctx context.Context, planners []Planner) error {
	for _, planner := range planners {
		plan, err := planner(ctx)
		tx.provisional = tx.provisional || plan.Provisional
		if err != nil {
			tx.refusal = err
			return err
		}
		for _, do := range plan.Creates {
			tx.creates = append(tx.creates, create{do, plan.Explain})
		}
		if plan.Guard != nil {
			tx.addition.Guards = append(tx.addition.Guards, plan.Guard)
		}
		if plan.Condition != nil {
			tx.addition.Conditions = append(tx.addition.Conditions, plan.Condition)
			tx.renew = append(tx.renew, plan.Renew)
		}
	}
	tx.ctx = context.WithValue(ctx, begunKey{}, tx)
	return tx.next()
}

// next creates the next object or, if there is none, writes all.
func (tx *begun) next() error {
	if len(tx.creates) == 0 {
		tx.done = true
		for {
			tx.response, tx.err = tx.put(context.WithValue(tx.ctx, additionKey{}, &tx.addition))
			if !errors.Is(tx.err, ErrConditionChanged) || !tx.renewConditions() {
				return tx.err
			}
		}
	}
	create := tx.creates[0]
	tx.creates = tx.creates[1:]
	err := create.do(tx.ctx)
	if err == nil && !tx.done {
		err = errors.New("no object was created in the namespace")
	}
	// The first refusal is that of the innermost create.
	if !tx.done && tx.refusal == nil {
		if tx.refusal = err; create.explain != nil {
			tx.refusal = create.explain(err)
		}
	}
	return err
}

// renewConditions renews the conditions, and reports whether the plans are still right. If
// not, or if that cannot be found out, the transaction has to be planned again.
func (tx *begun) renewConditions() bool {
	for i, renew := range tx.renew {
		if renew == nil {
			return false
		}
		condition, err := renew(tx.ctx)
		if err != nil || condition == nil {
			return false
		}
		tx.addition.Conditions[i] = condition
	}
	return true
}

// add adds an object, and returns when all is written or can't be.
func (tx *begun) add(object Object) (kubernetes.PutResponse, error) {
	if tx.done || tx.refusal != nil {
		return kubernetes.PutResponse{}, errors.New("a function creates a second object in the transaction of a namespace")
	}
	tx.addition.Objects = append(tx.addition.Objects, object)
	err := tx.next()
	switch {
	case !tx.done:
		return kubernetes.PutResponse{}, err
	case tx.err != nil || !tx.response.Succeeded:
		return tx.response, tx.err
	}
	return tx.response, err // an error from after the transaction
}
