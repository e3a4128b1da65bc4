// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/borough-io/borough/test/poll"
)

// TestHangingLeader checks that the requests to a leader that hangs end when another
// member leads, which is noticed in any response of another member.
func TestHangingLeader(t *testing.T) {
	t.Parallel()
	for name, respond := range map[string]func(t *testing.T, client *clientv3.Client, followers cluster){
		"to a request": func(t *testing.T, client *clientv3.Client, followers cluster) {
			for range (1 + len(followers)) * anyMemberEvery { // one to each member, the others to the leader
				go func() { _, _ = put(t.Context(), client) }()
			}
		},
		"in a watch": func(t *testing.T, _ *clientv3.Client, followers cluster) {
			if _, err := put(t.Context(), followers.client(t, NewLeader())); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for i := range 1 + len(s.followers) { // a stream to each member
				ctx := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("stream", strconv.Itoa(i)))
				<-s.client.Watch(ctx, "k", clientv3.WithCreatedNotify())
			}

			poll.Eventually(t, func() string { // it would not be answered, and no other is sent before
				if s.leader.asking.Load() {
					return "a question is on its way"
				}
				return ""
			})
			s.member.proxy.Hang()
			s.leader.requests.Store(0) // so that the next requests are for the leader
			s.leader.spread.Store(0)
			results := make(chan error, anyMemberEvery-1)
			for range cap(results) {
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					_, err := put(ctx, s.client)
					results <- err
				}()
			}
			poll.Eventually(t, func() string {
				if n := s.leader.requests.Load(); n < anyMemberEvery-1 {
					return fmt.Sprintf("%d requests are on their way", n)
				}
				return ""
			})
			moveLeader(t, s.member, s.followers[0])
			// Again, because a request fails, without a response, while the members elect.
			poll.Eventually(t, func() string {
				if respond(t, s.client, s.followers); len(results) == 0 {
					return "the requests have not ended"
				}
				return ""
			})
			for range cap(results) {
				if err := <-results; !errors.Is(err, rpctypes.ErrLeaderChanged) {
					t.Errorf("A put to the leader that hangs returned %v", err)
				}
			}
		})
	}
}

// TestLeaderThatTimesOut has a leader that does not carry out writes, as one whose disk hangs. The
// next request must not be sent to it.
func TestLeaderThatTimesOut(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	s := &setup{leader: NewLeader()}
	s.member, s.followers = cluster.leader(t)
	var hangs atomic.Bool
	s.client = cluster.client(t, s.leader, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		err := invoke(ctx, method, request, reply, cc, options...)
		if _, ok := request.(*pb.PutRequest); ok && err == nil && hangs.Load() && reply.(*pb.PutResponse).Header.MemberId == s.member.id() {
			return rpctypes.ErrGRPCTimeout
		}
		return err
	}))
	s.awaitKnown(t, s.member)
	s.leader.requests.Store(0) // so that the next requests are for the leader
	hangs.Store(true)
	if _, err := put(t.Context(), s.client); !errors.Is(err, rpctypes.ErrTimeout) {
		t.Fatalf("A put to the leader that hangs returned %v", err)
	}
	failed := 0
	for range len(cluster) {
		if _, err := put(t.Context(), s.client); err != nil {
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d of %d members timed out, want 1: the requests are sent to all in turn", failed, len(cluster))
	}
}
