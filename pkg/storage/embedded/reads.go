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

// Get reads keys.
func (r readRetrier) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (response *clientv3.GetResponse, err error) {
	err = retryTimeout(ctx, func() error {
		response, err = r.KV.Get(ctx, key, opts...)
		return err
	})
	return response, err
}

// retryTimeout calls a function again while its error is a timeout of etcd and the context has
// not ended. It needs no delay between two calls, because each takes until the timeout.
func retryTimeout(ctx context.Context, f func() error) error {
	for {
		if err := f(); !errors.Is(err, rpctypes.ErrTimeout) || ctx.Err() != nil {
			return err
		}
	}
}
