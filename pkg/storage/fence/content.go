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
)

// content is what the store of a namespaced resource writes through.
type content struct {
	kubernetes.Interface
	kv       clientv3.KV
	fence    *Fence
	resource Resource
}

// OptimisticPut creates the object only in a Namespace that exists and is not
// being deleted. Otherwise, and if the object does not exist, it returns an API
// error: NotFound for the Namespace, or Forbidden with the cause
// NamespaceTerminating. An existing object is the ordinary conflict.
func (c *content) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	if expectedRevision != 0 {
		// An object that exists keeps its Namespace from being removed.
		return c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	}
	namespace, name, ok := splitKey(c.resource.Prefix, key)
	if !ok {
		return kubernetes.PutResponse{}, apierrors.NewInternalError(fmt.Errorf("key %q is not of the form %sNAMESPACE/NAME", key, c.resource.Prefix))
	}
	namespaceKey := c.fence.config.Namespaces.Prefix + namespace
	put := clientv3.OpPut(key, string(value), clientv3.WithLease(opts.LeaseID))
	read := []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(namespaceKey), c.fence.epoch.read()}

	revision, known := c.fence.known(namespace)
	for {
		txn := c.kv.Txn(ctx)
		if known {
			txn = txn.If(
				clientv3.Compare(clientv3.ModRevision(key), "=", 0),
				clientv3.Compare(clientv3.ModRevision(namespaceKey), "=", revision),
				clientv3.Compare(clientv3.CreateRevision(namespaceKey), ">", 0),
				c.fence.epoch.unchanged(),
			).Then(put).Else(read...)
		} else {
			txn = txn.Then(read...)
		}
		response, err := txn.Commit()
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		if known && response.Succeeded {
			return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
		}
		if existing := got(response, 0); existing != nil {
			return conflict(response, existing, opts), nil
		}
		// The Namespace has not been seen before, or it or the epoch has changed
		// since: this is how they stand now.
		c.fence.epoch.learn(got(response, 2))
		revision, err = c.fence.admit(ctx, c.resource.GroupResource, namespace, name, got(response, 1))
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		known = true
	}
}

// splitKey takes a key of a namespaced resource apart.
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
