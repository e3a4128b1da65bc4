// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// disruption is an operation on a site under load, or a failure.
type disruption struct {
	name    string
	retries retries
	run     func(context.Context, *testing.T, *site, *load) error
}

// TestServersAndControllers restarts and kills servers and controllers.
func TestServersAndControllers(t *testing.T) {
	t.Parallel()
	disrupt(t, gracefully, []disruption{
		{"servers restarted", none, restartServers},
		{"controllers restarted", none, restartControllers},
		{"servers killed", requeue, killServers},
		{"controllers killed", requeue, killControllers},
	})
}

// TestEtcd restarts and kills members of etcd.
func TestEtcd(t *testing.T) {
	t.Parallel()
	disrupt(t, nil, []disruption{
		{"restarted", none, restartEtcd},
		{"killed", requeue, killEtcd},
	})
}

// TestEtcdFailing pauses members of etcd, and fills the disk of one.
func TestEtcdFailing(t *testing.T) {
	t.Parallel()
	disrupt(t, nil, []disruption{
		{"paused", requeue, pauseEtcd},
		{"out of disk", requeue, fillDisk},
	})
}

// disrupt runs the disruptions one by one. Each must leave a healthy site.
func disrupt(t *testing.T, serverFlags []string, disruptions []disruption) {
	s := newSite(t, serverFlags)
	for _, d := range disruptions {
		ok := t.Run(d.name, func(t *testing.T) {
			l := s.startLoad(t, d.retries)
			if err := l.awaitWrites(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := d.run(t.Context(), t, s, l); err != nil {
				t.Fatal(err)
			}
			if err := l.awaitWrites(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.stop(t)
		})
		if !ok {
			return // the next one would not start with a healthy site
		}
	}
}

func restartServers(ctx context.Context, _ *testing.T, s *site, l *load) (err error) {
	for _, server := range s.borough.Servers {
		err = errors.Join(err, restartServer(ctx, server), l.awaitWrites(ctx))
	}
	return err
}

func killServers(ctx context.Context, _ *testing.T, s *site, l *load) (err error) {
	for _, server := range s.borough.Servers {
		err = errors.Join(err, killServer(ctx, server), l.awaitWrites(ctx), startServer(ctx, server), l.awaitWrites(ctx))
	}
	return err
}

// restartControllers restarts both, so that each leads for a while.
func restartControllers(ctx context.Context, t *testing.T, s *site, l *load) error {
	for _, controller := range s.borough.Controllers {
		then := s.leases.now()
		if err := controller.Process.Stop(); err != nil {
			return err
		}
		move, err := s.leases.awaitMove(ctx, then)
		if err != nil {
			return err
		}
		t.Log(move)
		if !move.released {
			t.Error("a controller that shut down gracefully did not release the Lease")
		}
		if err := errors.Join(l.awaitWrites(ctx), controller.Start(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func killControllers(ctx context.Context, t *testing.T, s *site, l *load) error {
	for _, controller := range s.borough.Controllers {
		then := s.leases.now()
		controller.Process.Kill()
		if err := controller.Process.Flaws(); err != nil {
			return err
		}
		move, err := s.leases.awaitMove(ctx, then)
		if err != nil {
			return err
		}
		t.Log(move)
		if move.released {
			t.Error("a controller that was killed released the Lease")
		}
		if err := errors.Join(l.awaitWrites(ctx), controller.Start(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func restartEtcd(ctx context.Context, _ *testing.T, s *site, l *load) (err error) {
	for _, member := range s.etcd.Members {
		err = errors.Join(err, restartMember(ctx, member), l.awaitWrites(ctx))
	}
	return err
}

func killEtcd(ctx context.Context, _ *testing.T, s *site, l *load) (err error) {
	for _, member := range s.etcd.Members {
		member.Process.Kill()
		err = errors.Join(err, l.awaitWrites(ctx), member.Start(ctx), l.awaitWrites(ctx))
	}
	return err
}

// pauseEtcd pauses a follower and the leader, as on a machine that hangs:
// connections stay open, but nothing is received.
func pauseEtcd(ctx context.Context, t *testing.T, s *site, l *load) error {
	leader, follower, err := s.leader(ctx)
	if err != nil {
		return err
	}
	for _, member := range []*testcluster.EtcdMember{follower, leader} {
		if err := member.Process.Pause(); err != nil {
			return err
		}
		served, err := l.awaitAll(ctx)
		t.Log(served)
		if err := errors.Join(err, member.Process.Resume(), l.awaitWrites(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// fillDisk fills the disk of the leader of etcd.
func fillDisk(ctx context.Context, t *testing.T, s *site, l *load) error {
	leader, _, err := s.leader(ctx)
	if err != nil {
		return err
	}
	switch err := leader.FillDisk(ctx); {
	case errors.Is(err, errors.ErrUnsupported):
		t.Logf("skipped: %v", err)
		return nil
	case err != nil:
		return err
	}
	t.Log(leader.Process.Tail(2))
	served, err := l.awaitAll(ctx)
	t.Log(served)
	return errors.Join(err, leader.Start(ctx))
}
