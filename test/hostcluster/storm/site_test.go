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
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster"
)

// site is two servers, each with a controller, on an etcd of three members.
type site struct {
	etcd    *hostcluster.Etcd
	tls     *tls.Config      // for etcd
	client  *clientv3.Client // of etcd
	servers [2]server
}

// server is a server with its controller. It reaches each member of etcd through
// a lag.
type server struct {
	*harness.Borough
	lags []*lag
}

func newSite(t *testing.T) *site {
	t.Helper()
	etcd, err := hostcluster.StartEtcd(t.Context(), t.TempDir(), hostcluster.EtcdOptions{Members: 3})
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
	t.Cleanup(func() { _ = s.client.Close() }) // fails only when it is closed

	for i := range s.servers {
		s.servers[i].lags = s.newLags(t)
		s.servers[i].Borough = harness.New(t)
		if i > 0 { // the same users for both
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

// newLags returns a lag for each member.
func (s *site) newLags(t *testing.T) (lags []*lag) {
	t.Helper()
	for _, member := range s.etcd.Members {
		l, err := newLag(member.Endpoint, s.tls)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.close(); err != nil {
				t.Error(err)
			}
		})
		lags = append(lags, l)
	}
	return lags
}

// newClient returns a client of etcd itself.
func (s *site) newClient(endpoints ...string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  s.tls,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               zap.NewNop(), // that members are away is no news
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	return client, nil
}

// start starts the server, also again after it was killed.
func (s *server) start(ctx context.Context) error {
	var endpoints []string
	for _, l := range s.lags {
		endpoints = append(endpoints, l.endpoint())
	}
	return s.StartServer(ctx,
		"--etcd-servers="+strings.Join(endpoints, ","),
		// The storm is judged by the whole history.
		"--etcd-compaction-interval=0")
}

// setLag sets how late the server hears of what changes.
func (s *server) setLag(delay time.Duration) {
	for _, l := range s.lags {
		l.delay.Store(int64(delay))
	}
}

// killMember ends a member of etcd at once, for the servers too.
func (s *site) killMember(member int) error {
	s.etcd.Members[member].Process.Kill()
	return errors.Join(s.servers[0].lags[member].cut(), s.servers[1].lags[member].cut())
}

// startMember starts a member that was killed.
func (s *site) startMember(ctx context.Context, member int) error {
	return errors.Join(
		s.etcd.Members[member].Start(ctx),
		s.servers[0].lags[member].serve(), s.servers[1].lags[member].serve())
}

// leader returns the index of the member that leads, once there is one, and its
// id and that of another.
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
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, 0, 0, fmt.Errorf("etcd has no leader: %w", err)
		}
	}
}

// useUnfenced has the test start servers without the fence.
func useUnfenced(t *testing.T) {
	t.Helper()
	controller, err := harness.Binary("borough-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(controller, filepath.Join(dir, filepath.Base(controller))); err != nil {
		t.Fatal(err)
	}
	flags := fmt.Sprintf("-X k8s.io/component-base/version.gitVersion=%s -X github.com/borough-io/borough/pkg/storage/fence.off=true", harness.Version)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "-ldflags", flags, "./cmd/borough-apiserver")
	cmd.Dir = harness.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a server without the fence: %v\n%s", err, out)
	}
	t.Setenv("BOROUGH_BIN", dir)
}
