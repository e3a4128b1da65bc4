// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// readRetrier is a KV that repeats reads that timed out, as clients over gRPC do. etcd
// fails a read that has waited for five seconds, as while its log waits for the disk.
type readRetrier struct{ clientv3.KV }

// Get reads keys. It needs no delay between two tries, because each takes until a timeout of
// etcd.
func (r readRetrier) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	for {
		response, err := r.KV.Get(ctx, key, opts...)
		if !errors.Is(err, rpctypes.ErrTimeout) || ctx.Err() != nil {
			return response, err
		}
	}
}
