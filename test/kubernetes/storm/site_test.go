// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/etcdproxy"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// site is two servers, each with a controller, that share an etcd of three
// members.
type site struct {
	etcd    *testcluster.Etcd
	tls     *tls.Config      // for etcd
	client  *clientv3.Client // of etcd
	servers [2]server

	// losing makes the proxies lose every loseEvery-th response to a transaction;
	// transactions counts them.
	losing       atomic.Bool
	transactions atomic.Int64
}

// loseEvery is the number of transactions per lost response.
const loseEvery = 5

// loses reports whether the response to a call is lost.
func (s *site) loses(method string, _ []byte) bool {
	return s.losing.Load() && method == etcdproxy.MethodTxn && s.transactions.Add(1)%loseEvery == 0
}

// server is a server with its controller. It connects to each member of etcd
// through a proxy.
type server struct {
	*harness.Borough
	proxies []*etcdproxy.Proxy
}

func newSite(t *testing.T) *site {
	t.Helper()
	etcd, err := testcluster.StartEtcd(t.Context(), t.TempDir(), testcluster.EtcdOptions{Members: 3})
	if err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	s := &site{etcd: etcd}
	t.Cleanup(func() {
		if t.Failed() {
			for _, member := range etcd.Members {
				t.Log(member.Process.Tail(20))
			}
		}
		etcd.Kill()
	})
	s.tls, err = transport.TLSInfo{CertFile: etcd.CertFile(), KeyFile: etcd.KeyFile(), TrustedCAFile: etcd.CAFile()}.ClientConfig()
	if err != nil {
		t.Fatalf("read the TLS files for etcd: %v", err)
	}
	s.client, err = s.newClient(strings.Split(etcd.Endpoints(), ",")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Close() }) // fails only if it is already closed

	for i := range s.servers {
		s.servers[i].proxies = s.newProxies(t)
		s.servers[i].Borough = harness.New(t)
		if i > 0 { // so that both accept the same users
			pki := os.DirFS(filepath.Join(s.servers[0].Dir, "pki"))
			if err := os.CopyFS(filepath.Join(s.servers[i].Dir, "pki"), pki); err != nil {
				t.Fatalf("share the certificates: %v", err)
			}
		}
		if err := errors.Join(s.servers[i].start(t.Context()), s.servers[i].StartController(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// newProxies returns a proxy for each member.
func (s *site) newProxies(t *testing.T) (proxies []*etcdproxy.Proxy) {
	t.Helper()
	for _, member := range s.etcd.Members {
		proxy, err := etcdproxy.New(member.Endpoint, s.tls)
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

// newClient returns a client of etcd.
func (s *site) newClient(endpoints ...string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  s.tls,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               zap.NewNop(), // failed members are expected
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	return client, nil
}

// start starts or restarts the server.
func (s *server) start(ctx context.Context) error {
	var endpoints []string
	for _, proxy := range s.proxies {
		endpoints = append(endpoints, proxy.Endpoint())
	}
	return s.StartServer(ctx,
		"--etcd-servers="+strings.Join(endpoints, ","),
		// The test checks the whole history.
		"--etcd-compaction-interval=0")
}

// setDelay sets the delay of the server's watches.
func (s *server) setDelay(delay time.Duration) {
	for _, proxy := range s.proxies {
		proxy.SetDelay(delay)
	}
}

// killMember kills a member of etcd and cuts the servers' connections to it.
func (s *site) killMember(member int) error {
	s.etcd.Members[member].Process.Kill()
	return errors.Join(s.servers[0].proxies[member].Cut(), s.servers[1].proxies[member].Cut())
}

// startMember starts a member that was killed.
func (s *site) startMember(ctx context.Context, member int) error {
	return errors.Join(
		s.etcd.Members[member].Start(ctx),
		s.servers[0].proxies[member].Serve(), s.servers[1].proxies[member].Serve())
}

// leader returns the index and ID of the member that leads, once there is one,
// and the ID of another member.
func (s *site) leader(ctx context.Context) (leader int, id, other uint64, err error) {
	for {
		for i, member := range s.etcd.Members {
			asking, cancel := context.WithTimeout(ctx, 5*time.Second)
			status, err := s.client.Status(asking, member.Endpoint)
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

// useUnfenced makes the test start servers without the fence.
func useUnfenced(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(harness.Root, "hack", "build.sh"), "-o", dir+"/")
	cmd.Env = append(cmd.Environ(), "LDFLAGS=-X github.com/borough-io/borough/pkg/storage/fence.off=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a server without the fence: %v\n%s", err, out)
	}
	t.Setenv("BOROUGH_BIN", dir)
}
