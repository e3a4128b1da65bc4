// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// sendingWatcher is a watcher whose responses the test sends.
type sendingWatcher struct {
	clientv3.Watcher
	responses chan clientv3.WatchResponse
	ctx       context.Context
}

func (w *sendingWatcher) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	w.ctx = ctx
	return w.responses
}

// TestBoundedWatch sends responses that the client reads only afterwards.
func TestBoundedWatch(t *testing.T) {
	response := func(revision int64, size int) clientv3.WatchResponse {
		kv := &mvccpb.KeyValue{ModRevision: revision, Value: make([]byte, size)}
		return clientv3.WatchResponse{Events: []*clientv3.Event{{Kv: kv, PrevKv: &mvccpb.KeyValue{Value: make([]byte, size)}}}}
	}
	for name, test := range map[string]struct {
		responses, size int
		want            int // how many are read before the watch ends with an error
		expired         bool
	}{
		"few":           {10, 10, 10, false},
		"many":          {maxPending / eventSize, 10, 0, true},
		"one is larger": {1, maxPending, 1, false},
		"two are":       {2, maxPending / 3, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &sendingWatcher{responses: make(chan clientv3.WatchResponse)}
			read := boundedWatcher{inner}.Watch(unreadable.WithoutCache(t.Context()), "key")
			for i := range test.responses {
				select {
				case inner.responses <- response(int64(i+1), test.size):
				case <-inner.ctx.Done():
				}
			}
			close(inner.responses)
			got, expired := 0, false
			for r := range read {
				if expired = errors.Is(r.Err(), rpctypes.ErrCompacted); expired {
					continue
				}
				if got++; len(r.Events) != 1 || r.Events[0].Kv.ModRevision != int64(got) {
					t.Errorf("response %d is %v", got, r)
				}
			}
			if got != test.want || expired != test.expired {
				t.Errorf("read %d responses, expired: %t; want %d, %t", got, expired, test.want, test.expired)
			}
		})
	}
}
