// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/borough-io/borough/pkg/storage/precondition"
)

// content is the interface through which the store of a namespaced resource
// writes.
type content struct {
	kubernetes.Interface
	kv       clientv3.KV
	fence    *Fence
	resource Resource
}

// OptimisticPut writes the object only if the preconditions of the attempt in the
// context hold; otherwise it returns precondition.ErrStale. It creates the object
// only in a Namespace that exists and is not being deleted; otherwise, unless the
// object exists, it returns an API error: NotFound for the Namespace, or Forbidden
// with the cause NamespaceTerminating. If the object is at another revision, it
// returns a response that has not succeeded.
func (c *content) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	preconditions, err := c.fence.preconditions(ctx)
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	put := clientv3.OpPut(key, string(value), clientv3.WithLease(opts.LeaseID))
	switch {
	case expectedRevision == 0:
		return c.create(ctx, key, put, preconditions, opts)
	case len(preconditions) > 0:
		return c.update(ctx, key, put, expectedRevision, preconditions, opts)
	}
	// No check of the Namespace: it is not removed while the object exists.
	response, err := c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	c.fence.observe(response.Revision)
	return response, err
}

func (c *content) create(ctx context.Context, key string, put clientv3.Op, preconditions []clientv3.Cmp, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	namespace, name, ok := splitKey(c.resource.Prefix, key)
	if !ok {
		return kubernetes.PutResponse{}, apierrors.NewInternalError(fmt.Errorf("key %q is not of the form %sNAMESPACE/NAME", key, c.resource.Prefix))
	}
	namespaceKey := c.fence.config.Namespaces.Prefix + namespace
	read := []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(namespaceKey), c.fence.generation.read()}

	revision, cached := c.fence.cachedRevision(namespace)
	for {
		generation := c.fence.generation.revision.Load()
		txn := c.kv.Txn(ctx)
		if cached {
			txn = txn.If(append([]clientv3.Cmp{
				clientv3.Compare(clientv3.ModRevision(key), "=", 0),
				clientv3.Compare(clientv3.ModRevision(namespaceKey), "=", revision),
				clientv3.Compare(clientv3.CreateRevision(namespaceKey), ">", 0),
				c.fence.generation.current(generation),
			}, preconditions...)...).Then(put).Else(read...)
		} else {
			txn = txn.Then(read...)
		}
		response, err := txn.Commit()
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		c.fence.observe(response.Header.Revision)
		if cached && response.Succeeded {
			return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
		}
		if existing := rangeResult(response, 0); existing != nil {
			return conflict(response, existing, opts), nil
		}
		// The Namespace was not in the cache, or it or the generation has changed.
		// Take both from this read.
		c.fence.generation.update(rangeResult(response, 2))
		current, err := c.fence.checkNamespace(ctx, c.resource.GroupResource, namespace, name, rangeResult(response, 1))
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		if cached && current == revision && rangeResult(response, 2).GetModRevision() == generation {
			return kubernetes.PutResponse{}, precondition.From(ctx).Fail(response.Header.Revision)
		}
		revision, cached = current, true
	}
}

func (c *content) update(ctx context.Context, key string, put clientv3.Op, expectedRevision int64, preconditions []clientv3.Cmp, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", expectedRevision)
	response, err := c.kv.Txn(ctx).If(append([]clientv3.Cmp{unchanged}, preconditions...)...).Then(put).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	c.fence.observe(response.Header.Revision)
	if response.Succeeded {
		return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
	}
	if existing := rangeResult(response, 0); existing.GetModRevision() != expectedRevision {
		return conflict(response, existing, opts), nil
	}
	return kubernetes.PutResponse{}, precondition.From(ctx).Fail(response.Header.Revision)
}

// splitKey returns the namespace and the name in a key of a namespaced resource.
func splitKey(prefix, key string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", false
	}
	return namespace, name, true
}
