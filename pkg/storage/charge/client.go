// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/storage/transaction"
)

// client is a client that counts the quotas whose usage is not known after its writes.
type client struct {
	kubernetes.Interface
	kv      clientv3.KV
	charger *Charger
}

// NewClient returns a client that counts the quotas whose usage is not known after a write.
// The inner client may determine whether a write that etcd did not answer was carried out.
func (c *Charger) NewClient(inner kubernetes.Interface, kv clientv3.KV) kubernetes.Interface {
	return &client{inner, kv, c}
}

// OptimisticPut writes an object. A quota that was created, or changed so that it limits
// something else, is counted, and so are those that were created with a Namespace.
func (c *client) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	response, err := c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	if err != nil || !response.Succeeded {
		return response, err
	}
	keys := []string{key}
	if added := transaction.AdditionOf(ctx); added != nil {
		for _, object := range added.Objects {
			keys = append(keys, object.Key)
		}
	}
	for _, key := range keys {
		if namespace, _, ok := c.charger.quotas.Split(key); ok {
			c.charger.Count(ctx, c.kv, namespace)
		}
	}
	return response, nil
}

// OptimisticDelete deletes an object. If that could not be read, the quotas of its Namespace
// are counted.
func (c *client) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	response, err := c.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	if change := changeOf(ctx); err == nil && response.Succeeded && change != nil && change.Unknown {
		if namespace, ok := c.charger.namespaceOf(key); ok {
			c.charger.Count(ctx, c.kv, namespace)
		}
	}
	return response, err
}

// namespaceOf returns the namespace in the key of an object that quotas can count.
func (c *Charger) namespaceOf(key string) (namespace string, ok bool) {
	for i := range c.content {
		if namespace, _, ok := c.content[i].Split(key); ok {
			return namespace, true
		}
	}
	return "", false
}
