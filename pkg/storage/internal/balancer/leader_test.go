// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/tcpproxy"
	"github.com/borough-io/borough/test/leaktest"
	"github.com/borough-io/borough/test/poll"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cluster is an etcd cluster of three members.
type cluster []*clusterMember

// clusterMember is accessed through a proxy.
type clusterMember struct {
	*embed.Etcd
	proxy *tcpproxy.Proxy
	stop  func()
}

func (m *clusterMember) id() uint64 { return uint64(m.Server.MemberID()) }
func (m *clusterMember) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.proxy.Port()))
}

func startCluster(t *testing.T) cluster {
	t.Helper()
	var configs []*embed.Config
	var initial []string
	for i := range 3 {
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		peer := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
		config := embed.NewConfig()
		config.Name, config.Dir = fmt.Sprintf("m%d", i), t.TempDir()
		config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		config.UnsafeNoFsync = true
		config.ElectionMs = 5000 // on a busy machine, the heartbeats of a leader come late
		config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
		config.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
		config.AdvertiseClientUrls = config.ListenClientUrls
		configs, initial = append(configs, config), append(initial, config.Name+"="+peer.String())
	}
	var c cluster
	for _, config := range configs {
		config.InitialCluster = strings.Join(initial, ",")
		etcd, err := embed.StartEtcd(config)
		if err != nil {
			t.Fatal(err)
		}
		m := &clusterMember{Etcd: etcd, stop: sync.OnceFunc(etcd.Close)}
		t.Cleanup(m.stop)
		c = append(c, m)
	}
	for _, m := range c {
		<-m.Server.ReadyNotify()
		proxy, err := tcpproxy.New(m.Clients[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		m.proxy = proxy
	}
	return c
}

// leader returns the leader, once there is one, and the followers.
func (c cluster) leader(t *testing.T) (leader *clusterMember, followers cluster) {
	t.Helper()
	poll.Eventually(t, func() string {
		leader, followers = nil, nil
		for _, m := range c {
			if m.Server.Leader() == m.Server.MemberID() {
				leader = m
			} else {
				followers = append(followers, m)
			}
		}
		if leader == nil {
			return "the cluster has no leader"
		}
		return ""
	})
	return leader, followers
}

// client returns a client whose keepalives never fail.
func (c cluster) client(t *testing.T, leader *Leader, options ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{DialOptions: append(leader.DialOptions(), options...), Logger: zap.NewNop()}
	for _, m := range c {
		config.Endpoints = append(config.Endpoints, "http://"+m.address())
	}
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// sender sends a request, and returns the header of the response.
type sender func(context.Context, *clientv3.Client) (*pb.ResponseHeader, error)

func put(ctx context.Context, client *clientv3.Client) (*pb.ResponseHeader, error) {
	response, err := client.Put(ctx, "k", "")
	if err != nil {
		return nil, err
	}
	return response.Header, nil
}

// senders counts the responses to requests by the member that sent them.
func senders(t *testing.T, client *clientv3.Client, requests int, send sender) map[uint64]int {
	t.Helper()
	count := map[uint64]int{}
	for range requests {
		header, err := send(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		count[header.MemberId]++
	}
	return count
}

// setup is a cluster, and a client that knows the leader.
type setup struct {
	member    *clusterMember // that leads
	followers cluster
	leader    *Leader
	client    *clientv3.Client
}

func start(t *testing.T) *setup {
	t.Helper()
	cluster := startCluster(t)
	s := &setup{leader: NewLeader()}
	s.member, s.followers = cluster.leader(t)
	s.client = cluster.client(t, s.leader)
	s.awaitKnown(t, s.member)
	return s
}

// awaitKnown sends requests until the member is known to lead.
func (s *setup) awaitKnown(t *testing.T, member *clusterMember) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for s.leader.known.Load().address != member.address() {
		if _, err := put(ctx, s.client); err != nil && !errors.Is(err, rpctypes.ErrLeaderChanged) {
			t.Fatalf("Requests are not sent to the leader: %v", err)
		}
	}
}

func moveLeader(t *testing.T, from, to *clusterMember) {
	t.Helper()
	// A transfer that raft gives up does not end by itself.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := from.Server.MoveLeader(ctx, from.id(), to.id()); err != nil {
		t.Fatal(err)
	}
}

// TestRequests checks which requests are sent to the leader, and that the followers get
// some of each kind.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := start(t)

	const requests = 10 * anyMemberEvery
	for name, test := range map[string]struct {
		send     sender
		toLeader bool
	}{
		"put": {put, true},
		"get": {func(ctx context.Context, client *clientv3.Client) (*pb.ResponseHeader, error) {
			response, err := client.Get(ctx, "k")
			if err != nil {
				return nil, err
			}
			return response.Header, nil
		}, true},
		"transaction": {func(ctx context.Context, client *clientv3.Client) (*pb.ResponseHeader, error) {
			response, err := client.Txn(ctx).Then(clientv3.OpGet("k")).Commit()
			if err != nil {
				return nil, err
			}
			return response.Header, nil
		}, true},
		"list": {func(ctx context.Context, client *clientv3.Client) (*pb.ResponseHeader, error) {
			response, err := client.Get(ctx, "k", clientv3.WithPrefix())
			if err != nil {
				return nil, err
			}
			return response.Header, nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			count := senders(t, s.client, requests, test.send)
			for _, f := range s.followers {
				if n := count[f.id()]; (n < requests/5) != test.toLeader || n == 0 {
					t.Errorf("A follower got %d of %d requests: %v", n, requests, count)
				}
			}
		})
	}
}

// TestOtherLeader checks that requests follow the leader.
func TestOtherLeader(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, member *clusterMember, followers cluster){
		"moved":   func(t *testing.T, member *clusterMember, followers cluster) { moveLeader(t, member, followers[1]) },
		"stopped": func(_ *testing.T, member *clusterMember, _ cluster) { member.stop() }, // moves the leadership
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)

			end(t, s.member, s.followers)
			next, _ := s.followers.leader(t)
			s.awaitKnown(t, next)
			if count := senders(t, s.client, 5*anyMemberEvery, put); count[next.id()] < 4*anyMemberEvery {
				t.Errorf("The new leader %d got few requests: %v", next.id(), count)
			}
		})
	}
}

// TestUnknownLeader checks that requests are sent to any member if the leader is not
// among the endpoints.
func TestUnknownLeader(t *testing.T) {
	t.Parallel()
	_, followers := startCluster(t).leader(t)
	client := followers.client(t, NewLeader())
	// Connections do not become ready at the same time.
	poll.Eventually(t, func() string {
		if count := senders(t, client, 2, put); len(count) < 2 {
			return fmt.Sprintf("one of the followers gets all requests: %v", count)
		}
		return ""
	})
	count := senders(t, client, 40, put)
	for _, f := range followers {
		if count[f.id()] < 10 {
			t.Errorf("A follower got few requests: %v", count)
		}
	}
}

// TestMayNotAsk checks that a client that may not ask who leads does so once in each term.
func TestMayNotAsk(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	deny := func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if method == "/etcdserverpb.Maintenance/Status" {
			asked.Add(1)
			return rpctypes.ErrGRPCPermissionDenied
		}
		return invoke(ctx, method, request, reply, cc, options...)
	}
	client := startCluster(t).client(t, NewLeader(), grpc.WithChainUnaryInterceptor(deny))
	senders(t, client, 100, put)
	if n := asked.Load(); n == 0 || n > 5 {
		t.Errorf("asked %d times", n)
	}
}

// TestClosedConnection checks that a question on a connection that is closed ends, and
// that another one is asked then.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	s := &setup{leader: NewLeader()}
	s.member, s.followers = cluster.leader(t)
	closed := make(chan struct{})
	var asked atomic.Int32
	wait := func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if method == "/etcdserverpb.Maintenance/Status" {
			asked.Add(1)
			<-closed
		}
		return invoke(ctx, method, request, reply, cc, options...)
	}
	first := cluster.client(t, s.leader, grpc.WithChainUnaryInterceptor(wait))
	if _, err := put(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	close(closed)
	poll.Eventually(t, func() string {
		if s.leader.asking.Load() {
			return "the question has not ended"
		}
		return ""
	})
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	s.client = cluster.client(t, s.leader)
	s.awaitKnown(t, s.member)
}
