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
	preconditions, err := c.fence.preconditions(ctx)
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	namespace, name, err := c.splitKey(key)
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	if expectedRevision != 0 {
		denial, err := c.fence.config.Charger.CheckUpdate(ctx, c.kv, c.resource.GroupResource, namespace, key, len(value))
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		if denial != nil {
			return kubernetes.PutResponse{}, c.forbidden(ctx, namespace, name, denial)
		}
	}
	put := clientv3.OpPut(key, string(value), clientv3.WithLease(opts.LeaseID))
	charged := c.fence.config.Charger.Begin(ctx, c.kv, namespace, key, len(value))
	defer charged.End()
	var response kubernetes.PutResponse
	switch {
	case expectedRevision == 0:
		response, err = c.create(ctx, key, namespace, name, put, preconditions, charged, opts)
	case len(preconditions) > 0 || charged != nil:
		response, err = c.update(ctx, key, namespace, name, put, expectedRevision, preconditions, charged, opts)
	default:
		// No check of the Namespace: it is not removed while the object exists.
		response, err = c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
		c.fence.observe(response.Revision)
	}
	return response, err
}

// OptimisticDelete deletes the object and charges the quotas of the Namespace.
func (c *content) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	namespace, name, err := c.splitKey(key)
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	charged := c.fence.config.Charger.Begin(ctx, c.kv, namespace, key, 0)
	if charged == nil {
		return c.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	}
	defer charged.End()
	response, err := c.change(ctx, key, namespace, name, clientv3.OpDelete(key), expectedRevision, nil, charged)
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	deleted := kubernetes.DeleteResponse{Succeeded: response.Succeeded, Revision: response.Header.Revision}
	if !deleted.Succeeded && opts.GetOnFailure {
		deleted.KV = rangeResult(response, 0)
	}
	return deleted, nil
}

func (c *content) create(ctx context.Context, key, namespace, name string, put clientv3.Op, preconditions []clientv3.Cmp, charged *charge.Charge, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	namespaceKey := c.fence.config.Namespaces.Prefix + namespace
	read := append([]clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(namespaceKey), c.fence.generation.read()}, charged.Get()...)

	revision, cached := c.fence.cachedRevision(namespace)
	for {
		denial, err := charged.Prepare(ctx)
		switch {
		case err != nil:
			return kubernetes.PutResponse{}, err
		case denial != nil && charged.Verified():
			charged.End() // before the denial is explained
			return kubernetes.PutResponse{}, c.forbidden(ctx, namespace, name, denial)
		}
		generation := c.fence.generation.revision.Load()
		try := cached && denial == nil
		txn := c.kv.Txn(ctx)
		if try {
			compare := append([]clientv3.Cmp{
				clientv3.Compare(clientv3.ModRevision(key), "=", 0),
				clientv3.Compare(clientv3.ModRevision(namespaceKey), "=", revision),
				c.fence.generation.current(generation),
			}, preconditions...)
			txn = txn.If(append(compare, charged.Compare()...)...).Then(append([]clientv3.Op{put}, charged.Put()...)...).Else(read...)
		} else {
			txn = txn.If(preconditions...).Then(read...).Else(read...)
		}
		response, requoted, err := charged.Commit(ctx, txn, try, 3)
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		c.fence.observe(response.Header.Revision)
		if try && response.Succeeded {
			return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
		}
		if existing := rangeResult(response, 0); existing != nil {
			return conflict(response, existing, opts), nil
		}
		// The Namespace was not in the cache, or it, the generation or the quotas have
		// changed, or the quotas seem to deny the write. Take all from this read.
		c.fence.generation.update(rangeResult(response, 2))
		current, err := c.fence.checkNamespace(ctx, c.resource.GroupResource, namespace, name, rangeResult(response, 1))
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

func (c *content) update(ctx context.Context, key, namespace, name string, put clientv3.Op, expectedRevision int64, preconditions []clientv3.Cmp, charged *charge.Charge, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	response, err := c.change(ctx, key, namespace, name, put, expectedRevision, preconditions, charged)
	switch {
	case err != nil:
		return kubernetes.PutResponse{}, err
	case !response.Succeeded:
		return conflict(response, rangeResult(response, 0), opts), nil
	}
	return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
}

// change updates or deletes the object, and returns a response that has not succeeded,
// with the object, if that is at another revision.
func (c *content) change(ctx context.Context, key, namespace, name string, op clientv3.Op, expectedRevision int64, preconditions []clientv3.Cmp, charged *charge.Charge) (*clientv3.TxnResponse, error) {
	unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", expectedRevision)
	read := append([]clientv3.Op{clientv3.OpGet(key)}, charged.Get()...)
	for {
		denial, err := charged.Prepare(ctx)
		switch {
		case err != nil:
			return nil, err
		case denial != nil && charged.Verified():
			charged.End() // before the denial is explained
			return nil, c.forbidden(ctx, namespace, name, denial)
		}
		compare := append([]clientv3.Cmp{unchanged}, preconditions...)
		write := []clientv3.Op{op}
		if denial == nil {
			compare, write = append(compare, charged.Compare()...), append(write, charged.Put()...)
		} else {
			write = read
		}
		response, requoted, err := charged.Commit(ctx, c.kv.Txn(ctx).If(compare...).Then(write...).Else(read...), denial == nil, 1)
		if err != nil {
			return nil, err
		}
		c.fence.observe(response.Header.Revision)
		if denial == nil && response.Succeeded {
			return response, nil
		}
		if !response.Succeeded && rangeResult(response, 0).GetModRevision() != expectedRevision {
			return response, nil
		}
		if !response.Succeeded && (denial != nil || !requoted) {
			return nil, precondition.From(ctx).Fail(response.Header.Revision)
		}
	}
}

// forbidden returns the error of a write that a quota does not allow.
func (c *content) forbidden(ctx context.Context, namespace, name string, denial *quota.Denial) error {
	return apierrors.NewForbidden(c.resource.GroupResource, name, c.fence.config.Charger.Explain(ctx, namespace, denial))
}

// splitKey returns the namespace and the name in a key of the resource.
func (c *content) splitKey(key string) (namespace, name string, err error) {
	namespace, name, ok := c.resource.Split(key)
	if !ok {
		return "", "", apierrors.NewInternalError(fmt.Errorf("key %q is not of the form %sNAMESPACE/NAME", key, c.resource.Prefix))
	}
	return namespace, name, nil
}
