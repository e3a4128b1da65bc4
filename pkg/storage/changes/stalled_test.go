// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// stalledStream does not get what a member of etcd sends after it has stalled.
type stalledStream struct {
	grpc.ClientStream
	stalled *atomic.Bool
}

// RecvMsg implements grpc.ClientStream.
func (s stalledStream) RecvMsg(message any) error {
	for {
		if err := s.ClientStream.RecvMsg(message); err != nil || !s.stalled.Load() {
			return err
		}
	}
}

// TestStalledMember has a watch that gets nothing any more, but does not end.
func TestStalledMember(t *testing.T) {
	t.Parallel() // it takes seconds
	for name, test := range map[string]struct {
		streams int64 // that stall
		awaited bool
	}{
		"a caller waits":                             {1, true},
		"no caller waits":                            {1, false},
		"the next watch is not confirmed":            {2, true},
		"no caller waits, nor is the next confirmed": {2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stalled atomic.Bool
			var streams atomic.Int64
			stall := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
				s, err := open(ctx, desc, cc, method, options...)
				if err == nil && streams.Add(1) <= test.streams {
					s = stalledStream{s, &stalled}
				}
				return s, err
			}
			client, err := clientv3.New(clientv3.Config{
				Endpoints:   []string{storagetest.StartGRPC(t)},
				DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(stall)},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			feed, lines := newFeed(client)
			run(t, feed)
			<-lines // the objects
			revision := put(t, client, "/r/a/n/x", "1")
			want(t, lines, "apply %d: a n/x@%d=1", revision, revision)

			stalled.Store(true)
			revision = put(t, client, "/r/a/n/x", "2")
			if test.awaited {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := feed.Await(ctx, revision); err != nil {
					t.Fatal(err)
				}
			}
			want(t, lines, "apply %d: a n/x@%d=2", revision, revision)
		})
	}
}
