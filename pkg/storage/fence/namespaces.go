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
)

// namespaces is what the store of Namespaces writes through.
type namespaces struct {
	kubernetes.Interface
	kv    clientv3.KV
	fence *Fence
}

// OptimisticPut writes as ever, a new Namespace in its epoch, but not with a lease:
// etcd would remove the Namespace when it expires, and ask nobody.
func (n *namespaces) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	if opts.LeaseID != clientv3.NoLease {
		return kubernetes.PutResponse{}, apierrors.NewInternalError(errors.New("a namespace cannot be stored with a time to live"))
	}
	defer n.fence.forget(n.name(key))
	if expectedRevision == 0 {
		return n.create(ctx, key, value, opts)
	}
	return n.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
}

// create writes a Namespace that does not exist.
func (n *namespaces) create(ctx context.Context, key string, value []byte, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	for {
		response, err := n.kv.Txn(ctx).If(
			clientv3.Compare(clientv3.ModRevision(key), "=", 0),
			n.fence.epoch.unchanged(),
		).Then(clientv3.OpPut(key, string(value))).Else(clientv3.OpGet(key), n.fence.epoch.read()).Commit()
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		if response.Succeeded {
			return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
		}
		if existing := got(response, 0); existing != nil {
			return conflict(response, existing, opts), nil
		}
		n.fence.epoch.learn(got(response, 1))
	}
}

// OptimisticDelete removes a Namespace only if nothing is left in it. Otherwise
// it returns an API error: Conflict with the cause NamespaceNotEmptyCause. A
// Namespace at another revision is the ordinary conflict.
func (n *namespaces) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	name := n.name(key)
	unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", expectedRevision)
	empty := []clientv3.Cmp{unchanged}
	read := []clientv3.Op{clientv3.OpGet(key)}
	for _, r := range n.fence.config.Namespaced {
		// The prefix ends in a slash, or it would take in other Namespaces.
		prefix := r.Prefix + name + "/"
		// No key in the range has been created: there are none.
		empty = append(empty, clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix())
		read = append(read, clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
	}
	for {
		// To compare, etcd reads all that is left and keeps writers waiting, so
		// the transaction is tried only where it should succeed.
		response, err := n.kv.Txn(ctx).Then(read...).Commit()
		if err != nil {
			return kubernetes.DeleteResponse{}, err
		}
		if current := got(response, 0); current == nil || current.ModRevision != expectedRevision {
			conflict := kubernetes.DeleteResponse{Revision: response.Header.Revision}
			if opts.GetOnFailure {
				conflict.KV = current
			}
			return conflict, nil
		}
		var left []schema.GroupResource
		for i, r := range n.fence.config.Namespaced {
			if got(response, i+1) != nil {
				left = append(left, r.GroupResource)
			}
		}
		if len(left) > 0 {
			return kubernetes.DeleteResponse{}, newNotEmpty(n.fence.config.Namespaces.GroupResource, name, left)
		}

		response, err = n.kv.Txn(ctx).If(empty...).Then(clientv3.OpDelete(key)).Commit()
		if err != nil {
			return kubernetes.DeleteResponse{}, err
		}
		if response.Succeeded {
			n.fence.forget(name)
			return kubernetes.DeleteResponse{Succeeded: true, Revision: response.Header.Revision}, nil
		}
		// Something has changed in between; the next read tells what.
	}
}

func (n *namespaces) name(key string) string {
	return strings.TrimPrefix(key, n.fence.config.Namespaces.Prefix)
}
