// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// content is the interface through which the store of a namespaced resource
// writes.
type content struct {
	kubernetes.Interface
	kv       clientv3.KV
	fence    *Fence
	resource stored.Resource
}

// OptimisticPut writes the object only if the preconditions of the attempt in the
// context hold; otherwise it returns precondition.ErrStale. It charges the quotas of the
// Namespace, and returns Forbidden if one does not allow the write. It creates the object
// only in a Namespace that exists and is not being deleted; otherwise, unless the
// object exists, it returns an API error: NotFound for the Namespace, or Forbidden
// with the cause NamespaceTerminating. If the object is at another revision, it
// returns a response that has not succeeded.
func (c *content) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	w, err := c.newWrite(key, clientv3.OpPut(key, string(value), clientv3.WithLease(opts.LeaseID)), expectedRevision)
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	if w.preconditions, err = c.fence.preconditions(ctx); err != nil {
		return kubernetes.PutResponse{}, err
	}
	charger := c.fence.config.Charger
	if expectedRevision != 0 {
		denial, err := charger.CheckUpdate(ctx, c.kv, c.resource.GroupResource, w.namespace, key, len(value))
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		if denial != nil {
			return kubernetes.PutResponse{}, w.forbidden(ctx, denial)
		}
	}
	w.charge = charger.Begin(ctx, c.kv, w.namespace, key, len(value))
	defer w.charge.End()
	switch {
	case expectedRevision == 0:
		return w.create(ctx, opts)
	case len(w.preconditions) > 0 || w.charge != nil:
		response, err := w.change(ctx)
		switch {
		case err != nil:
			return kubernetes.PutResponse{}, err
		case !response.Succeeded:
			return conflict(response, rangeResult(response, 0), opts), nil
		}
		return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
	}
	// No check of the Namespace: it is not removed while the object exists.
	return c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
}

// OptimisticDelete deletes the object and charges the quotas of the Namespace.
func (c *content) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	w, err := c.newWrite(key, clientv3.OpDelete(key), expectedRevision)
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	w.charge = c.fence.config.Charger.Begin(ctx, c.kv, w.namespace, key, 0)
	if w.charge == nil {
		return c.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	}
	defer w.charge.End()
	response, err := w.change(ctx)
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	deleted := kubernetes.DeleteResponse{Succeeded: response.Succeeded, Revision: response.Header.Revision}
	if !deleted.Succeeded && opts.GetOnFailure {
		deleted.KV = rangeResult(response, 0)
	}
	return deleted, nil
}

// write is the write of one object.
type write struct {
	*content
	key, namespace, name string
	op                   clientv3.Op
	// revision is the one that the object must be at, or 0 if it must not exist.
	revision      int64
	preconditions []clientv3.Cmp
	charge        *charge.Charge
}

// newWrite returns a write without preconditions and charge.
func (c *content) newWrite(key string, op clientv3.Op, revision int64) (*write, error) {
	namespace, name, ok := c.resource.Split(key)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("key %q is not of the form %sNAMESPACE/NAME", key, c.resource.Prefix))
	}
	return &write{content: c, key: key, namespace: namespace, name: name, op: op, revision: revision}, nil
}

// create creates the object in its Namespace.
func (w *write) create(ctx context.Context, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	namespaceKey := w.fence.config.Namespaces.Prefix + w.namespace
	read := append([]clientv3.Op{clientv3.OpGet(w.key), clientv3.OpGet(namespaceKey), w.fence.generation.read()}, w.charge.Get()...)

	revision, cached := w.fence.cachedRevision(w.namespace)
	for {
		denied, err := w.prepareCharge(ctx)
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		generation := w.fence.generation.revision.Load()
		try := cached && !denied
		txn := w.kv.Txn(ctx)
		if try {
			compare := append([]clientv3.Cmp{
				clientv3.Compare(clientv3.ModRevision(w.key), "=", 0),
				clientv3.Compare(clientv3.ModRevision(namespaceKey), "=", revision),
				w.fence.generation.current(generation),
			}, w.preconditions...)
			txn = txn.If(append(compare, w.charge.Compare()...)...).Then(append([]clientv3.Op{w.op}, w.charge.Put()...)...).Else(read...)
		} else {
			txn = txn.If(w.preconditions...).Then(read...).Else(read...)
		}
		response, requoted, err := w.charge.Commit(ctx, txn, try, 3)
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		if try && response.Succeeded {
			return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
		}
		if existing := rangeResult(response, 0); existing != nil {
			return conflict(response, existing, opts), nil
		}
		// The Namespace was not in the cache, or it, the generation or the quotas have
		// changed, or the quotas seem to deny the write. Take all from this read.
		w.fence.generation.update(rangeResult(response, 2))
		current, err := w.fence.checkNamespace(ctx, w.resource.GroupResource, w.namespace, w.name, rangeResult(response, 1))
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		unchanged := cached && current == revision && rangeResult(response, 2).GetModRevision() == generation && !requoted
		if !response.Succeeded && (!try || unchanged) {
			return kubernetes.PutResponse{}, precondition.From(ctx).Fail(response.Header.Revision)
		}
		revision, cached = current, true
	}
}

// change updates or deletes the object, and returns a response that has not succeeded,
// with the object, if that is at another revision.
func (w *write) change(ctx context.Context) (*clientv3.TxnResponse, error) {
	unchanged := clientv3.Compare(clientv3.ModRevision(w.key), "=", w.revision)
	read := append([]clientv3.Op{clientv3.OpGet(w.key)}, w.charge.Get()...)
	for {
		denied, err := w.prepareCharge(ctx)
		if err != nil {
			return nil, err
		}
		compare, then := append([]clientv3.Cmp{unchanged}, w.preconditions...), read
		if !denied {
			compare, then = append(compare, w.charge.Compare()...), append([]clientv3.Op{w.op}, w.charge.Put()...)
		}
		response, requoted, err := w.charge.Commit(ctx, w.kv.Txn(ctx).If(compare...).Then(then...).Else(read...), !denied, 1)
		if err != nil {
			return nil, err
		}
		if !denied && response.Succeeded {
			return response, nil
		}
		if !response.Succeeded && rangeResult(response, 0).GetModRevision() != w.revision {
			return response, nil
		}
		if !response.Succeeded && (denied || !requoted) {
			return nil, precondition.From(ctx).Fail(response.Header.Revision)
		}
	}
}

// prepareCharge prepares the charge of the next transaction. It returns Forbidden if a
// quota does not allow the write. It reports denied if that is so only by quotas that may
// have changed: the transaction then has to read them.
func (w *write) prepareCharge(ctx context.Context) (denied bool, err error) {
	denial, err := w.charge.Prepare(ctx)
	if err == nil && denial != nil && w.charge.Verified() {
		w.charge.End() // before the denial is explained
		err = w.forbidden(ctx, denial)
	}
	return denial != nil, err
}

// forbidden returns the error of a write that a quota does not allow.
func (w *write) forbidden(ctx context.Context, denial *quota.Denial) error {
	return apierrors.NewForbidden(w.resource.GroupResource, w.name, w.fence.config.Charger.Explain(ctx, w.namespace, denial))
}
