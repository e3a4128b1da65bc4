// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"path"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

// counting is a client that counts the quotas whose usage is not known after its writes.
type counting struct {
	kubernetes.Interface
	kv      clientv3.KV
	charger *charge.Charger
	quotas  string // the prefix of their keys
}

// Counting returns a client that counts the quotas whose usage is not known after a write.
// The inner client may determine whether a write that etcd did not answer was carried out.
func (f *Fence) Counting(inner kubernetes.Interface, kv clientv3.KV) kubernetes.Interface {
	i := slices.IndexFunc(f.config.Namespaced, func(r stored.Resource) bool { return f.config.Charger.Quotas(r.GroupResource) })
	if i < 0 || off != "" {
		return inner
	}
	return &counting{inner, kv, f.config.Charger, f.config.Namespaced[i].Prefix}
}

// OptimisticPut writes an object. A quota that was created, or changed so that it limits
// something else, is counted, and so are those that were created with a Namespace.
func (c *counting) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
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
		if strings.HasPrefix(key, c.quotas) {
			c.count(ctx, key)
		}
	}
	return response, nil
}

// OptimisticDelete deletes an object. If that could not be read, the quotas of its Namespace
// are counted.
func (c *counting) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	response, err := c.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	if err == nil && response.Succeeded && charge.LeavesUncounted(ctx) {
		c.count(ctx, key)
	}
	return response, err
}

// count counts the quotas of the Namespace that a key is in.
func (c *counting) count(ctx context.Context, key string) {
	c.charger.Count(ctx, c.kv, path.Base(path.Dir(key)))
}
