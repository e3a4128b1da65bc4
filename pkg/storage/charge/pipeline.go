// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxInFlight is the maximum number of transactions of a pipeline that etcd has not
// answered yet. Etcd writes to its log, with one sync to disk, all transactions that
// have arrived during the last sync.
const maxInFlight = 32

// maxStreak is the maximum number of transactions that must be carried out before more
// may be in flight.
const maxStreak = 1 << 10

// maxPredicted is the maximum size of the quotas that a transaction in a pipeline may
// write. The next one has to compare their values, and etcd limits its size
// (--max-request-bytes).
const maxPredicted = 64 << 10

// pipeline is how the writes of a server charge the quotas of one Namespace: in turn,
// but without waiting for each other's answers.
//
// A write takes the turn, computes its transaction from the quotas as the transactions
// in flight will leave them, and passes the turn when it sends the transaction. That
// compares the values of the quotas with what it was computed from. So if a transaction
// is not carried out, or arrives late, those that were computed from it are not carried
// out, also if other servers write at the same time: only etcd decides.
//
// After a transaction that was not carried out, or not answered, no other is sent until
// all in flight are answered. After the second of a write, it is tried again alone: it
// keeps the turn to its end. The number in flight halves, and grows while transactions
// are carried out; after each failure, more slowly. So where transactions overtake each
// other, as on the way to an external etcd, or where another server charges the same
// quotas, they are sent one by one.
type pipeline struct {
	// turn holds an element while a write has the turn.
	turn chan struct{}
	// answer wakes the write that has the turn.
	answer chan struct{}

	mu sync.Mutex
	// settled are the quotas as etcd had them at the latest known revision.
	settled *known
	// predicted are the quotas after the transactions in flight; nil if there are none,
	// or if one of them was not carried out.
	predicted *known
	inFlight  int
	// limit is the maximum of inFlight. It grows when streak, the number of transactions
	// that were carried out since it has changed, reaches goal.
	limit, goal, streak int
}

func newPipeline() pipeline {
	return pipeline{turn: make(chan struct{}, 1), answer: make(chan struct{}, 1), settled: &known{}, limit: 1, goal: 1}
}

// take takes the turn, in the order of the calls, and waits until another transaction
// may be sent.
func (p *pipeline) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return errWaited()
	}
	err := p.await(ctx, func() bool { return p.inFlight == 0 || p.predicted != nil && p.inFlight < p.limit })
	if err != nil {
		p.pass()
	}
	return err
}

// drain waits, in the turn, until no transaction is in flight.
func (p *pipeline) drain(ctx context.Context) error {
	return p.await(ctx, func() bool { return p.inFlight == 0 })
}

func (p *pipeline) await(ctx context.Context, ready func() bool) error {
	for {
		p.mu.Lock()
		ok := ready()
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-p.answer:
		case <-ctx.Done():
			return errWaited()
		}
	}
}

func errWaited() error {
	return apierrors.NewTimeoutError("the request waited for other writes that the resource quotas of the namespace count", 0)
}

// pass gives the turn to the next write.
func (p *pipeline) pass() { <-p.turn }

// send passes the turn of a write that sends its transaction, and predicts what that
// makes of the quotas.
func (p *pipeline) send(base, next *known) {
	p.mu.Lock()
	if p.inFlight == 0 || p.predicted == base { // otherwise it was computed from a wrong prediction
		p.predicted = next
	}
	p.inFlight++
	p.mu.Unlock()
	p.pass()
}

// answered records that etcd has answered a transaction that was sent, or will not, and
// whether it was carried out.
func (p *pipeline) answered(carriedOut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	switch {
	case carriedOut:
		p.succeed()
	case p.predicted != nil: // the first that was not
		p.limit, p.goal, p.streak = max(p.limit/2, 1), min(2*p.goal, maxStreak), 0
	}
	if !carriedOut || p.inFlight == 0 {
		p.predicted = nil
	}
	select {
	case p.answer <- struct{}{}:
	default: // one is enough
	}
}

func (p *pipeline) succeed() {
	if p.streak++; p.streak < p.goal {
		return
	}
	if p.limit > 1 {
		p.goal = max(p.goal/2, 1)
	}
	p.limit, p.streak = min(p.limit+1, maxInFlight), 0
}

// latest returns the quotas from which the next transaction is computed.
func (p *pipeline) latest() *known {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.predicted != nil {
		return p.predicted
	}
	return p.settled
}

// learn replaces what is known by what is newer.
func (p *pipeline) learn(settled *known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if settled.revision >= p.settled.revision {
		p.settled = settled
	}
}

// forget drops what is settled, so that the quotas are read.
func (p *pipeline) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = &known{}
}
