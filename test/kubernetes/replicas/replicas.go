// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas runs what the tests of several servers share: two servers, each with
// a controller, on an etcd of three members, and the failures of all of them.
package replicas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/etcdproxy"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// Set is two servers, each with a controller, that share an etcd of three
// members. Etcd keeps the whole history.
type Set struct {
	Etcd    *testcluster.Etcd
	Client  *clientv3.Client // of etcd
	Servers [2]Server

	// losing makes the proxies lose every loseEvery-th response to a transaction;
	// transactions counts them.
	losing       atomic.Bool
	transactions atomic.Int64
}

// loseEvery is the number of transactions per lost response.
const loseEvery = 5

// loses reports whether the response to a call is lost.
func (s *Set) loses(method string, _ []byte) bool {
	return s.losing.Load() && method == etcdproxy.MethodTxn && s.transactions.Add(1)%loseEvery == 0
}

// Server is a server with its controller. It connects to each member of etcd
// through a proxy.
type Server struct {
	*harness.Borough
	proxies []*etcdproxy.Proxy
}

// New returns a Set that has started. It stops with the test.
func New(t *testing.T) *Set {
	t.Helper()
	// Processes are killed, but the page cache survives.
	s := &Set{Etcd: testcluster.StartEtcdForTest(t, t.TempDir(), testcluster.EtcdOptions{Members: 3, Unsafe: true})}
	var err error
	if s.Client, err = s.Etcd.NewClient(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Client.Close() }) // fails only if it is already closed

	for i := range s.Servers {
		s.Servers[i].proxies = s.newProxies(t)
		s.Servers[i].Borough = harness.New(t)
		if i > 0 { // so that both accept the same users
			pki := os.DirFS(filepath.Join(s.Servers[0].Dir, "pki"))
			if err := os.CopyFS(filepath.Join(s.Servers[i].Dir, "pki"), pki); err != nil {
				t.Fatalf("share the certificates: %v", err)
			}
		}
		if err := errors.Join(s.Servers[i].start(t.Context()), s.Servers[i].StartController(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// newProxies returns a proxy for each member.
func (s *Set) newProxies(t *testing.T) (proxies []*etcdproxy.Proxy) {
	t.Helper()
	config, err := s.Etcd.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range s.Etcd.Members {
		proxy, err := etcdproxy.New(member.Endpoint, config)
		if err != nil {
			t.Fatal(err)
		}
		proxy.Lose = s.loses
		t.Cleanup(func() {
			if err := proxy.Close(); err != nil {
				t.Error(err)
			}
		})
		proxies = append(proxies, proxy)
	}
	return proxies
}

// start starts or restarts the server.
func (s *Server) start(ctx context.Context) error {
	var endpoints []string
	for _, proxy := range s.proxies {
		endpoints = append(endpoints, proxy.Endpoint())
	}
	return s.StartServer(ctx,
		"--etcd-servers="+strings.Join(endpoints, ","),
		// The test checks the whole history.
		"--etcd-compaction-interval=0")
}

// SetDelay sets the delay of the server's watches.
func (s *Server) SetDelay(delay time.Duration) {
	for _, proxy := range s.proxies {
		proxy.SetDelay(delay)
	}
}

// killMember kills a member of etcd and cuts the servers' connections to it.
func (s *Set) killMember(member int) error {
	s.Etcd.Members[member].Process.Kill()
	return errors.Join(s.Servers[0].proxies[member].Cut(), s.Servers[1].proxies[member].Cut())
}

// startMember starts a member that was killed.
func (s *Set) startMember(ctx context.Context, member int) error {
	return errors.Join(
		s.Etcd.Members[member].Start(ctx),
		s.Servers[0].proxies[member].Serve(), s.Servers[1].proxies[member].Serve())
}

// leader returns the index and ID of the member that leads, once there is one,
// and the ID of another member.
func (s *Set) leader(ctx context.Context) (leader int, id, other uint64, err error) {
	for {
		for i, member := range s.Etcd.Members {
			asking, cancel := context.WithTimeout(ctx, 5*time.Second)
			status, err := s.Client.Status(asking, member.Endpoint)
			cancel()
			switch {
			case err != nil:
			case status.Leader == status.Header.MemberId:
				leader, id = i, status.Leader
			default:
				other = status.Header.MemberId
			}
		}
		if id != 0 && other != 0 {
			return leader, id, other, nil
		}
		if err := poll.Sleep(ctx, 50*time.Millisecond); err != nil {
			return 0, 0, 0, fmt.Errorf("etcd has no leader: %w", err)
		}
	}
}

// Mark writes a key of the tests, which marks the present, and returns the revision. It tries
// again while the members of etcd elect a leader.
func Mark(ctx context.Context, client *clientv3.Client) (revision int64, err error) {
	err = poll.Until(ctx, time.Minute, func(ctx context.Context) error {
		mark, err := client.Put(ctx, Prefix+"mark", "")
		if err == nil {
			revision = mark.Header.Revision
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("mark the present in etcd: %w", err)
	}
	return revision, nil
}
