// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// clusterScoped is the interface through which the store of a cluster-scoped resource
// writes, except that of the Namespaces.
type clusterScoped struct {
	kubernetes.Interface
	kv    clientv3.KV
	fence *Fence
}

// OptimisticPut writes an object. It creates it only in the current generation of creates,
// so that an earlier try is not carried out after ResolveCreate.
func (c *clusterScoped) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	if expectedRevision == 0 {
		return c.fence.create(ctx, c.kv, key, value, opts, addition{})
	}
	return c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
}

// create writes a cluster-scoped object that does not exist, with the addition.
func (f *Fence) create(ctx context.Context, kv clientv3.KV, key string, value []byte, opts kubernetes.PutOptions, addition addition) (kubernetes.PutResponse, error) {
	put := clientv3.OpPut(key, string(value), clientv3.WithLease(opts.LeaseID))
	read := append([]clientv3.Op{clientv3.OpGet(key), f.generation.read()}, addition.read...)
	for {
		response, err := kv.Txn(ctx).If(append([]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(key), "=", 0),
			f.generation.current(f.generation.revision.Load()),
		}, addition.compare...)...).Then(append([]clientv3.Op{put}, addition.put...)...).Else(read...).Commit()
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		if response.Succeeded {
			return kubernetes.PutResponse{Succeeded: true, Revision: response.Header.Revision}, nil
		}
		if existing := rangeResult(response, 0); existing != nil {
			return conflict(response, existing, opts), nil
		}
		if err := addition.check(response, 2); err != nil {
			return kubernetes.PutResponse{}, err
		}
		f.generation.update(rangeResult(response, 1))
	}
}
