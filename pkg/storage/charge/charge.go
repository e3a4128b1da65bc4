// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charge makes status.used of the ResourceQuotas in a Namespace part of the
// transactions that write what they count.
//
// A store (NewStore) computes what a write changes. Its client adds to the transaction
// of the write:
//
//   - the comparison that no quota of the Namespace was created after those that the
//     server knows. It holds for a Namespace without quotas;
//   - the comparisons that each of these is as the server expects it. They fail if
//     another server has changed, charged or deleted one;
//   - the quotas with their new usage.
//
// A quota whose usage is not known, because it is new or limits another resource than
// before, is counted first. No write that it could count is carried out between its
// creation and the count, on any server, because each has to know all quotas; so any
// server can count it at any time.
//
// The writes of a server that charge quotas of one Namespace take turns (pipeline), in
// the order in which they arrive: of several that are computed from the same usage, only
// one can be carried out, and the others would be repeated.
package charge

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/borough-io/borough/pkg/quota"
)

// off leaves out every charge if it is not empty. Only tests set it, to show what happens
// without charges, by linking with
// -ldflags "-X github.com/borough-io/borough/pkg/storage/charge.off=true".
var off string

// Charge is what one write adds to its transaction. The caller of Begin must call End. A
// nil Charge adds nothing.
type Charge struct {
	charger   *Charger
	change    *quota.Change
	namespace *namespace
	key       string
	valueSize int // of what is written to the key; 0 for a delete
	kv        clientv3.KV

	// turn means that it is the turn of the write, alone that in addition no transaction
	// is in flight. The turn is passed at the end unless it is that of the caller.
	turn, alone, borrowed bool
	// failed means that a transaction that was sent while others were in flight was not
	// carried out, single that it must not be sent then.
	failed, single bool
	// asked means that the quotas that are known have denied the write once.
	asked bool
	// read are the quotas that the last transaction has read, together with what decides
	// about the write, if it was alone, was to confirm a denial, or the Namespace does not
	// remember them. verified means that its comparisons held.
	read     *known
	verified bool

	// base is what the operations were computed from, next what it becomes with them.
	base, next *known
	compare    []clientv3.Cmp
	put        []clientv3.Op
	// charged are the indexes of the quotas in next that are written, size is the size of
	// their values.
	charged []int
	size    int
}

// Begin returns the charge of the write to a key of a Namespace with the context, or nil
// if it changes no usage. The size is that of the value, or 0 for a delete.
func (c *Charger) Begin(ctx context.Context, kv clientv3.KV, namespace, key string, valueSize int) *Charge {
	if c == nil || off != "" {
		return nil
	}
	change := changeOf(ctx)
	if change == nil || change.IsNeutral() {
		return nil
	}
	ns := c.namespace(namespace)
	borrowed := hasExclusiveTurn(ctx, ns)
	return &Charge{charger: c, change: change, namespace: ns, key: key, valueSize: valueSize, kv: kv, turn: borrowed, alone: borrowed, borrowed: borrowed,
		// The comparisons of the next transactions do not depend on whether a quota was
		// created or deleted.
		single: c.IsQuotas(change.Resource)}
}

// End lets the next write charge the quotas of the Namespace.
func (c *Charge) End() {
	if c != nil && c.turn && !c.borrowed {
		c.turn = false
		c.namespace.pass()
	}
}

// Prepare computes the operations from the quotas that are known. The denial is why
// these do not allow the write; unless it is Verified, the quotas have to be read before
// the write is rejected.
func (c *Charge) Prepare(ctx context.Context) (denial *quota.Denial, err error) {
	if c == nil {
		return nil, nil
	}
	if denial, err := c.confirm(); denial != nil || err != nil {
		return denial, err
	}
	for {
		if err := c.awaitCounted(ctx); err != nil {
			return nil, err
		}
		denial, err := c.compute(ctx)
		if err != nil || c.alone || denial == nil && c.size <= maxPredicted {
			return denial, err
		}
		if denial != nil && !c.asked {
			// What is in etcd probably denies it as well. Others need not wait for that.
			c.asked = true
			c.End()
			return denial, nil
		}
		if err := c.beAlone(ctx); err != nil {
			return nil, err
		}
	}
}

// confirm returns the denial of a write by the quotas that were read to confirm one. If these
// allow it, which they do before the transactions in flight are carried out, the write is
// computed in its turn.
func (c *Charge) confirm() (*quota.Denial, error) {
	if !c.asked || c.alone || c.read == nil || !c.read.readable() {
		return nil, nil
	}
	if c.base = c.read; c.verified && c.base.counted() {
		if _, denial, err := c.usage(); denial != nil || err != nil {
			return denial, err
		}
	}
	c.read = nil
	return nil, nil
}

// Verified reports whether the operations were computed from quotas that were read in
// the last transaction, and all else that it compared is as expected: of a transaction
// that failed, not only the quotas may have changed.
func (c *Charge) Verified() bool { return c != nil && c.read != nil && c.verified }

// awaitCounted takes the turn if the Namespace has quotas, and makes base those that
// are known, all counted.
func (c *Charge) awaitCounted(ctx context.Context) error {
	for {
		c.base = cmp.Or(c.read, c.namespace.latest())
		switch {
		case len(c.base.quotas) == 0:
			return nil
		case !c.turn:
			take := c.takeTurn
			if c.single {
				take = c.beAlone
			}
			if err := take(ctx); err != nil {
				return err
			}
		case c.base.counted():
			return nil
		default:
			if err := c.beAlone(ctx); err != nil {
				return err
			}
			if _, err := c.charger.countAll(ctx, c.kv, c.namespace); err != nil {
				return err
			}
			c.read = nil
		}
	}
}

// takeTurn takes the turn, unless the write has it.
func (c *Charge) takeTurn(ctx context.Context) error {
	if c.turn {
		return nil
	}
	if err := c.namespace.take(ctx); err != nil {
		return err
	}
	c.turn = true
	return nil
}

// beAlone takes the turn and waits until no other transaction is in flight: only the write
// that has the turn is woken.
func (c *Charge) beAlone(ctx context.Context) error {
	if c.alone {
		return nil
	}
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	if err := c.namespace.drain(ctx); err != nil {
		return err
	}
	c.alone = true
	return nil
}

// compute computes the operations from base.
func (c *Charge) compute(ctx context.Context) (denial *quota.Denial, err error) {
	c.compare, c.put, c.charged, c.size = nil, nil, nil, 0
	c.next = &known{revision: c.base.revision}
	used, denial, err := c.usage()
	if denial != nil || err != nil {
		return denial, err
	}
	for i, q := range c.base.quotas {
		c.compare = append(c.compare, q.unchanged())
		if q.key == c.key || q.unreadable != nil {
			continue
		}
		if used[i] != nil {
			charged := *q.ResourceQuota
			charged.Status.Used = used[i]
			value, err := c.charger.encode(ctx, q.key, &charged)
			if err != nil {
				return nil, err
			}
			c.put = append(c.put, clientv3.OpPut(q.key, value))
			c.charged = append(c.charged, len(c.next.quotas))
			c.size += len(value)
			q = storedQuota{ResourceQuota: &charged, key: q.key, value: value, revision: predictedRevision}
		}
		c.next.quotas = append(c.next.quotas, q)
	}
	noneCreated := clientv3.Compare(clientv3.CreateRevision(c.charger.quotas.In(c.namespace.name)), "<", c.base.revision+1).WithPrefix()
	c.compare = append(c.compare, noneCreated)
	return nil, nil
}

// usage returns the new usage of each quota of base, or nil for one that the write does not
// change, or why the quotas do not allow the write.
func (c *Charge) usage() (used []corev1.ResourceList, denial *quota.Denial, err error) {
	ofQuotas := c.charger.IsQuotas(c.change.Resource)
	if ofQuotas && c.change.Old == nil && !c.change.Unknown { // a create
		if denial := c.base.checkNumbers(c.valueSize); denial != nil {
			return nil, denial, nil
		}
	}
	used = make([]corev1.ResourceList, len(c.base.quotas))
	var exceeded *quota.Denial
	for i, q := range c.base.quotas {
		if q.key == c.key {
			continue // this write deletes it
		}
		if q.unreadable != nil {
			if c.change.Unknown && ofQuotas {
				continue // or none of several could be deleted
			}
			return nil, nil, apierrors.NewInternalError(fmt.Errorf("a resource quota of namespace %q may count the object, but cannot be read: %w", c.namespace.name, q.unreadable))
		}
		if used[i], denial = c.change.Used(q.ResourceQuota); denial.Exceeded() {
			// As in Kubernetes, the other quotas say first what else is wrong.
			exceeded = cmp.Or(exceeded, denial)
		} else if denial != nil {
			return nil, denial, nil
		}
	}
	return used, exceeded, nil
}

// Compare returns the comparisons that the transaction needs.
func (c *Charge) Compare() []clientv3.Cmp {
	if c == nil {
		return nil
	}
	return c.compare
}

// Put returns the writes of the quotas.
func (c *Charge) Put() []clientv3.Op {
	if c == nil {
		return nil
	}
	return c.put
}

// Get returns the read of the quotas, for a transaction whose comparisons fail.
func (c *Charge) Get() []clientv3.Op {
	if c == nil {
		return nil
	}
	return c.charger.get(c.namespace)
}

// Commit commits the transaction. It either writes, if its comparisons hold, or reads:
// then its i-th operation is Get, and changed is whether the quotas are others than
// those that Prepare used.
func (c *Charge) Commit(ctx context.Context, txn clientv3.Txn, writes bool, i int) (response *clientv3.TxnResponse, changed bool, err error) {
	if c == nil {
		response, err := txn.Commit()
		return response, false, err
	}
	pipelined := writes && c.turn && !c.alone
	carriedOut := false
	if pipelined {
		c.turn = false
		c.namespace.send(c.base, c.next)
		defer func() {
			c.single = c.failed // for the second time
			c.failed = !carriedOut
			c.namespace.answered(carriedOut)
		}()
	}
	response, err = txn.Commit()
	carriedOut = err == nil && writes && response.Succeeded
	switch {
	case err != nil:
		c.namespace.forget() // for example, etcd is full, and the quota has been deleted
	case carriedOut:
		c.carriedOut(response.Header.Revision)
	default:
		read := c.charger.learn(ctx, c.namespace, response, i)
		changed = !c.base.holds(read)
		c.read, c.verified = nil, response.Succeeded
		if c.alone || c.asked && !writes || !read.readable() {
			c.read = read
		}
	}
	return response, changed, err
}

// carriedOut records that the transaction was carried out at a revision.
func (c *Charge) carriedOut(revision int64) {
	switch {
	case c.charger.IsQuotas(c.change.Resource):
		c.namespace.forget() // next does not have a quota that this write has created
		return
	case len(c.base.quotas) == 0:
		return
	}
	settled := &known{revision: revision, quotas: slices.Clone(c.next.quotas)}
	for _, i := range c.charged {
		settled.quotas[i].revision = revision
	}
	c.namespace.learn(settled)
}
