// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charge makes status.used of the ResourceQuotas in a Namespace part of the
// transactions that write what they count.
//
// A store (NewStore) computes what a write changes. Its client adds to the transaction
// of the write:
//
//   - the comparison that no quota of the Namespace is newer than those that the server
//     knows. It holds for a Namespace without quotas, and fails if another server has
//     created, changed or charged one;
//   - the quotas with their new usage, if they are still at the known revision: the
//     first comparison does not notice that one was deleted.
//
// A quota whose usage is not known, because it is new or limits another resource than
// before, is counted first. No write that it could count is carried out between its
// creation and the count, on any server, because each has to know all quotas; so any
// server can count it at any time.
//
// The writes of a server that charge quotas of one Namespace take turns, in the order
// in which they arrive: only one of them can be carried out at each revision of a
// quota, and the others would be repeated.
package charge

import (
	"cmp"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/borough-io/borough/pkg/quota"
)

// Charge is what one write adds to its transaction. A nil Charge adds nothing. It must
// be ended.
type Charge struct {
	charger   *Charger
	change    *quota.Change
	namespace *namespace
	key       string
	kv        clientv3.KV
	// turn means that this is the turn of the write. It is returned at the end unless
	// the turn is that of the caller.
	turn, borrowed bool

	// base is what the operations were computed from, next what it becomes with them.
	base, next *known
	compare    []clientv3.Cmp
	put        []clientv3.Op
}

// Begin returns the charge of the write to a key of a Namespace with the context, or nil
// if it changes no usage.
func (c *Charger) Begin(ctx context.Context, kv clientv3.KV, namespace, key string) *Charge {
	if c == nil {
		return nil
	}
	change := changeOf(ctx)
	if change == nil || change.IsNeutral() {
		return nil
	}
	return c.newCharge(ctx, kv, namespace, change, key)
}

func (c *Charger) newCharge(ctx context.Context, kv clientv3.KV, namespace string, change *quota.Change, key string) *Charge {
	ns := c.namespace(namespace)
	borrowed := ctx.Value(turnKey{}) == ns
	return &Charge{charger: c, change: change, namespace: ns, key: key, kv: kv, turn: borrowed, borrowed: borrowed}
}

// End lets the next write charge the quotas of the Namespace.
func (c *Charge) End() {
	if c != nil && c.turn && !c.borrowed {
		<-c.namespace.turn
		c.turn = false
	}
}

// takeTurn waits until no other write of this server charges the quotas.
func (c *Charge) takeTurn(ctx context.Context) error {
	if c.turn {
		return nil
	}
	select {
	case c.namespace.turn <- struct{}{}:
		c.turn = true
		return nil
	case <-ctx.Done():
		return apierrors.NewTimeoutError("the request waited for other writes that the resource quotas of the namespace count", 0)
	}
}

// Prepare computes the operations from the quotas that are known. The denial is why
// these do not allow the write; before the write is rejected, the quotas have to be
// read.
func (c *Charge) Prepare(ctx context.Context) (denial *quota.Denial, err error) {
	if c == nil {
		return nil, nil
	}
	if err := c.awaitCounted(ctx); err != nil {
		return nil, err
	}
	c.compare, c.put, c.next = nil, nil, &known{}
	creates := c.change.Resource == c.charger.quotas.GroupResource && c.change.Old == nil
	if creates && len(c.base.quotas) >= MaxQuotas {
		return quota.NewDenial(fmt.Sprintf("the namespace has %d resource quotas, the maximum", MaxQuotas)), nil
	}
	var exceeded *quota.Denial
	for _, q := range c.base.quotas {
		if q.key == c.key {
			continue // this write deletes it
		}
		if q.unreadable != nil {
			if c.change.Unknown {
				continue // or none of several could be deleted
			}
			c.Forget() // it may be possible to read it later
			return nil, apierrors.NewInternalError(fmt.Errorf("a resource quota of namespace %q may count the object, but cannot be read: %w", c.namespace.name, q.unreadable))
		}
		used, denial := c.change.Used(q.ResourceQuota)
		if denial.Exceeded() {
			// As in Kubernetes, the other quotas say first what else is wrong.
			exceeded = cmp.Or(exceeded, denial)
			continue
		}
		if denial != nil {
			return denial, nil
		}
		if used != nil {
			charged := *q.ResourceQuota
			charged.Status.Used = used
			put, err := c.charger.encode(ctx, q.key, &charged)
			if err != nil {
				return nil, err
			}
			c.compare = append(c.compare, clientv3.Compare(clientv3.ModRevision(q.key), "=", q.revision))
			c.put = append(c.put, put)
			q = stored{ResourceQuota: &charged, key: q.key, revision: revisionOfCommit}
		}
		c.next.quotas = append(c.next.quotas, q)
	}
	if exceeded != nil {
		return exceeded, nil
	}
	unchanged := clientv3.Compare(clientv3.ModRevision(c.charger.prefix(c.namespace.name)), "<", c.base.revision+1).WithPrefix()
	c.compare = append(c.compare, unchanged)
	return nil, nil
}

// awaitCounted takes the turn if the Namespace has quotas, and makes base those that
// are known, all counted.
func (c *Charge) awaitCounted(ctx context.Context) error {
	for {
		c.base = c.namespace.known.Load()
		switch {
		case len(c.base.quotas) == 0:
			return nil
		case !c.turn:
			if err := c.takeTurn(ctx); err != nil {
				return err
			}
		case c.base.counted():
			return nil
		default:
			if err := c.countAll(ctx); err != nil {
				return err
			}
		}
	}
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
	return []clientv3.Op{clientv3.OpGet(c.charger.prefix(c.namespace.name), clientv3.WithPrefix())}
}

// Committed records that the transaction was carried out at a revision.
func (c *Charge) Committed(revision int64) {
	if c == nil {
		return
	}
	if c.change.Resource == c.charger.quotas.GroupResource {
		c.Forget()
		return
	}
	if len(c.put) == 0 {
		return
	}
	for i := range c.next.quotas {
		if q := &c.next.quotas[i]; q.revision == revisionOfCommit {
			q.revision = revision
		}
	}
	c.next.revision = revision
	c.namespace.learn(c.next)
}

// Forget drops what is known of the Namespace, because etcd did not answer.
func (c *Charge) Forget() {
	if c != nil {
		c.namespace.known.Store(&known{})
	}
}

// Read takes the quotas from the i-th operation of a transaction, which is Get, and
// reports whether they are others than those that Prepare used.
func (c *Charge) Read(ctx context.Context, response *clientv3.TxnResponse, i int) (changed bool) {
	if c == nil {
		return false
	}
	read := &known{revision: response.Header.Revision}
	for _, kv := range response.Responses[i].GetResponseRange().Kvs {
		read.quotas = append(read.quotas, c.charger.decode(ctx, kv))
	}
	c.namespace.learn(read)
	return c.base == nil || !c.base.equal(read)
}
