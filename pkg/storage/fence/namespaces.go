// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/storage/transaction"
)

// namespaces is the interface through which the store of Namespaces writes.
type namespaces struct {
	kubernetes.Interface
	kv    clientv3.KV
	fence *Fence
}

// OptimisticPut writes a Namespace. It returns an error for a put with a lease:
// etcd would remove the Namespace when the lease expires, even with content in it.
func (n *namespaces) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	if opts.LeaseID != clientv3.NoLease {
		return kubernetes.PutResponse{}, apierrors.NewInternalError(errors.New("a namespace cannot be stored with a time to live"))
	}
	defer n.fence.forget(n.name(key))
	if expectedRevision == 0 {
		return n.fence.create(ctx, n.kv, key, value, opts, newAddition(transaction.AdditionOf(ctx)))
	}
	return n.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
}

// OptimisticDelete removes a Namespace only if it contains no objects. Otherwise
// it returns an API error: Conflict with the cause NamespaceNotEmptyCause. If the
// Namespace is at another revision, it returns a response that has not succeeded.
func (n *namespaces) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	name := n.name(key)
	unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", expectedRevision)
	empty := []clientv3.Cmp{unchanged}
	read := []clientv3.Op{clientv3.OpGet(key)}
	for _, r := range n.fence.config.Namespaced {
		// The slash excludes other Namespaces whose names start with this one.
		prefix := r.In(name)
		// Holds if no key in the range has been created: the range is empty.
		empty = append(empty, clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix())
		read = append(read, clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
	}
	remove := func() (kubernetes.DeleteResponse, error) {
		response, err := n.kv.Txn(ctx).If(empty...).Then(clientv3.OpDelete(key)).Commit()
		if err != nil {
			return kubernetes.DeleteResponse{}, err
		}
		if response.Succeeded {
			n.fence.Removed(name)
		}
		return kubernetes.DeleteResponse{Succeeded: response.Succeeded, Revision: response.Header.Revision}, nil
	}
	// For the comparison etcd reads all content while it blocks writers, so the
	// transaction is tried only if there is probably none, or after a limited read has
	// found none.
	if n.seemsEmpty(ctx, name) {
		if response, err := remove(); err != nil || response.Succeeded {
			return response, err
		}
	}
	for {
		response, err := n.kv.Txn(ctx).Then(read...).Commit()
		if err != nil {
			return kubernetes.DeleteResponse{}, err
		}
		if current := rangeResult(response, 0); current == nil || current.ModRevision != expectedRevision {
			conflict := kubernetes.DeleteResponse{Revision: response.Header.Revision}
			if opts.GetOnFailure {
				conflict.KV = current
			}
			return conflict, nil
		}
		var left []schema.GroupResource
		for i, r := range n.fence.config.Namespaced {
			if rangeResult(response, i+1) != nil {
				left = append(left, r.GroupResource)
			}
		}
		if len(left) > 0 {
			return kubernetes.DeleteResponse{}, newNotEmpty(n.fence.config.Namespaces.GroupResource, name, left)
		}

		if response, err := remove(); err != nil || response.Succeeded {
			return response, err
		}
		// Something has changed since the read, so read again.
	}
}

// seemsEmpty reports whether a Namespace probably contains no objects.
func (n *namespaces) seemsEmpty(ctx context.Context, name string) bool {
	if n.fence.config.Unreadable != nil && n.fence.config.Unreadable(name) {
		return false
	}
	if likely, _ := ctx.Value(likelyEmptyKey{}).(bool); likely {
		return true
	}
	return n.fence.config.SeemsEmpty != nil && n.fence.config.SeemsEmpty(ctx, name)
}

// LikelyEmpty returns a context for the removal of a Namespace in which the caller has
// found no objects, or deleted all that it has found. The removal is then tried without a
// read before it.
func LikelyEmpty(ctx context.Context) context.Context {
	return context.WithValue(ctx, likelyEmptyKey{}, true)
}

type likelyEmptyKey struct{}

func (n *namespaces) name(key string) string {
	return strings.TrimPrefix(key, n.fence.config.Namespaces.Prefix)
}
