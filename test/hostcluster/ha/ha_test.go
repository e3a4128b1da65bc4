// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"testing"

	"github.com/borough-io/borough/test/hostcluster"
)

// trial is something that is done to a site under load.
type trial struct {
	name    string
	retries retries
	run     func(context.Context, *testing.T, *site, *load) error
}

// TestServersAndControllers restarts and kills them.
func TestServersAndControllers(t *testing.T) {
	t.Parallel()
	try(t, []trial{
		{"servers restarted", none, restartServers},
		{"controllers restarted", none, restartControllers},
		{"servers killed", requeue, killServers},
		{"controllers killed", requeue, killControllers},
	})
}

// TestEtcd restarts and kills its members.
func TestEtcd(t *testing.T) {
	t.Parallel()
	try(t, []trial{
		{"restarted", none, restartEtcd},
		{"killed", requeue, killEtcd},
	})
}

// TestEtcdFailing makes members stand still, and has one run out of disk.
func TestEtcdFailing(t *testing.T) {
	t.Parallel()
	try(t, []trial{
		{"standing still", requeue, pauseEtcd},
		{"out of disk", requeue, fillDisk},
	})
}

// try makes one trial after the other. Each begins when all is well again.
func try(t *testing.T, trials []trial) {
	s := newSite(t)
	for _, trial := range trials {
		ok := t.Run(trial.name, func(t *testing.T) {
			l := s.startLoad(t, trial.retries)
			if err := l.awaitWrites(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := trial.run(t.Context(), t, s, l); err != nil {
				t.Fatal(err)
			}
			if err := l.awaitWrites(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.stop(t)
		})
		if !ok {
			return // what follows would not begin well
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

// restartControllers has each lead for a while: the first one does.
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
			t.Error("a controller that ended in good order did not give the Lease back")
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
			t.Error("a controller that was killed gave the Lease back")
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

// pauseEtcd has a follower and the leader stand still, as on a machine that
// hangs: connections to it stay, and nothing comes over them.
func pauseEtcd(ctx context.Context, t *testing.T, s *site, l *load) error {
	leader, follower, err := s.leader(ctx)
	if err != nil {
		return err
	}
	for _, member := range []*hostcluster.EtcdMember{follower, leader} {
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
