// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// timeout bounds each wait. Most take seconds.
const timeout = 3 * time.Minute

// gracefully are the flags for graceful shutdown from the manifests. Watches have less
// time, because there are few.
var gracefully = []string{
	"--shutdown-delay-duration=10s",
	"--shutdown-send-retry-after=true",
	"--shutdown-watch-termination-grace-period=2s",
}

// site is a cluster that Borough is deployed into: two servers, two controllers, and
// an etcd of three members.
type site struct {
	cluster *testcluster.Cluster
	borough *testcluster.Borough
	etcd    *testcluster.Etcd
	leases  *leases
}

func newSite(t *testing.T, serverFlags []string) *site {
	t.Helper()
	ctx := t.Context()
	s := &site{cluster: testcluster.New(t, testcluster.Options{
		Etcd:                testcluster.EtcdOptions{Unsafe: true},
		NoControllerManager: true, // the tests do not need it
	})}
	// Processes are killed, but the page cache survives.
	s.etcd = testcluster.StartEtcdForTest(t, filepath.Join(s.cluster.Dir, "borough-etcd"), testcluster.EtcdOptions{Members: 3, Unsafe: true})
	s.borough = s.cluster.NewBorough(t, testcluster.BoroughOptions{
		Etcd:            s.etcd,
		ServerFlags:     serverFlags,
		ControllerFlags: testcluster.ShortLease,
	})
	if _, err := s.borough.AddServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.borough.AddController(ctx); err != nil {
		t.Fatal(err)
	}
	s.leases = watchLeases(t, s.cluster)
	return s
}

// leader returns the leader of etcd, once there is one, and a follower.
func (s *site) leader(ctx context.Context) (leader, follower *testcluster.EtcdMember, err error) {
	client, err := s.etcd.NewClient()
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	err = await(ctx, func(ctx context.Context) error {
		leader, follower = nil, nil
		for _, member := range s.etcd.Members {
			asking, cancel := context.WithTimeout(ctx, 5*time.Second)
			status, err := client.Status(asking, member.Endpoint)
			cancel()
			switch {
			case err != nil:
				return fmt.Errorf("get the status of %s: %w", member.Endpoint, err)
			case status.Leader == status.Header.MemberId:
				leader = member
			default:
				follower = member
			}
		}
		if leader == nil {
			return errors.New("etcd has no leader")
		}
		return nil
	})
	return leader, follower, err
}

// restartServer restarts a server as a rollout does: it sends SIGTERM, and at
// the same time the Service stops sending new requests.
func restartServer(ctx context.Context, server *testcluster.BoroughServer) error {
	stopped := make(chan error, 1)
	go func() { stopped <- server.Process.Stop() }()
	return errors.Join(server.SetReady(ctx, false), <-stopped, startServer(ctx, server))
}

// killServer kills a server, which the kubelet notices a little later.
func killServer(ctx context.Context, server *testcluster.BoroughServer) error {
	server.Process.Kill()
	return errors.Join(server.Process.Flaws(), server.SetReady(ctx, false))
}

func startServer(ctx context.Context, server *testcluster.BoroughServer) error {
	if err := server.Start(ctx); err != nil {
		return err
	}
	return server.SetReady(ctx, true)
}

// restartMember stops a member of etcd gracefully and starts it.
func restartMember(ctx context.Context, member *testcluster.EtcdMember) error {
	// It exits by the signal, so its exit code is never 0.
	if err := syscall.Kill(member.Process.PID(), syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop a member of etcd: %w", err)
	}
	select {
	case <-member.Process.Done():
	case <-ctx.Done():
		return fmt.Errorf("wait for a member of etcd to end: %w", context.Cause(ctx))
	}
	return member.Start(ctx)
}

// await polls the condition until it returns nil, for at most the timeout.
func await(ctx context.Context, condition func(context.Context) error) error {
	return poll.Until(ctx, timeout, condition)
}
