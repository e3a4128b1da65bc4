// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestGivenUp checks that a write is sent once if the member gives up, for which etcd's own
// client would repeat it.
func TestGivenUp(t *testing.T) {
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Canceled} {
		t.Run(code.String(), func(t *testing.T) {
			var writes atomic.Int32
			giveUp := func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				writes.Add(1)
				return status.Error(code, "given up")
			}
			client, err := clientv3.New(clientv3.Config{
				Endpoints:   []string{"http://127.0.0.1:1"},
				DialOptions: append(NewLeader().DialOptions(), grpc.WithChainUnaryInterceptor(giveUp)), Logger: zap.NewNop(),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Txn(t.Context()).Then(clientv3.OpPut("k", "")).Commit()
			if status.Code(err) != codes.Unavailable || writes.Load() != 1 {
				t.Errorf("%d writes, and error %v", writes.Load(), err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := put(ended, client); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v after the caller has given up", err)
			}
		})
	}
}
