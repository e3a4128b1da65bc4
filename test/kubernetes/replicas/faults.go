// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// Fault is a kind of failure.
type Fault struct {
	Name string
	// inject returns when the fault has ended. It calls during when the fault has
	// begun, if the servers can still acknowledge writes.
	inject func(ctx context.Context, s *Set, r *rand.Rand, during func(context.Context) error) error
}

// Inject injects the fault, and returns when it has ended. During is called in between,
// one or several times, if the servers can acknowledge writes then.
func (f *Fault) Inject(ctx context.Context, s *Set, r *rand.Rand, during func(context.Context) error) error {
	if err := f.inject(ctx, s, r, during); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// Faults are the kinds of failures.
var Faults = []Fault{
	{"a server is killed", func(ctx context.Context, s *Set, r *rand.Rand, during func(context.Context) error) error {
		server := &s.Servers[r.IntN(len(s.Servers))]
		return errors.Join(kill(server.Server), during(ctx), server.start(ctx))
	}},
	{"both controllers are killed", func(ctx context.Context, s *Set, _ *rand.Rand, during func(context.Context) error) error {
		err := errors.Join(kill(s.Servers[0].Controller), kill(s.Servers[1].Controller), during(ctx))
		for i := range s.Servers {
			err = errors.Join(err, s.Servers[i].StartController(ctx))
		}
		return err
	}},
	{"an etcd follower is killed", func(ctx context.Context, s *Set, r *rand.Rand, during func(context.Context) error) error {
		leader, _, _, err := s.leader(ctx)
		if err != nil {
			return err
		}
		n := len(s.Etcd.Members)
		follower := (leader + 1 + r.IntN(n-1)) % n
		return errors.Join(s.killMember(follower), during(ctx), s.startMember(ctx, follower))
	}},
	{"the etcd leader is killed", func(ctx context.Context, s *Set, _ *rand.Rand, during func(context.Context) error) error {
		leader, _, _, err := s.leader(ctx)
		if err != nil {
			return err
		}
		return errors.Join(s.killMember(leader), during(ctx), s.startMember(ctx, leader))
	}},
	{"the etcd leader is moved", func(ctx context.Context, s *Set, _ *rand.Rand, during func(context.Context) error) error {
		if err := s.moveLeader(ctx); err != nil {
			return fmt.Errorf("move the leader: %w", err)
		}
		return during(ctx)
	}},
	{"responses of etcd are lost", func(ctx context.Context, s *Set, _ *rand.Rand, during func(context.Context) error) error {
		s.losing.Store(true)
		defer s.losing.Store(false)
		for end := s.transactions.Load() + 100*loseEvery; s.transactions.Load() < end; {
			if err := during(ctx); err != nil {
				return err
			}
		}
		return nil
	}},
	{"two etcd members are killed", func(ctx context.Context, s *Set, r *rand.Rand, _ func(context.Context) error) error {
		survivor := r.IntN(len(s.Etcd.Members))
		return s.restartMembers(ctx, func(member int) bool { return member != survivor })
	}},
	{"everything is killed", func(ctx context.Context, s *Set, _ *rand.Rand, _ func(context.Context) error) error {
		var errs []error
		for i := range s.Servers {
			errs = append(errs, kill(s.Servers[i].Server), kill(s.Servers[i].Controller))
		}
		errs = append(errs, s.restartMembers(ctx, func(int) bool { return true }))
		for i := range s.Servers {
			errs = append(errs, s.Servers[i].start(ctx), s.Servers[i].StartController(ctx))
		}
		return errors.Join(errs...)
	}},
}

func init() {
	if runtime.GOOS == "linux" { // see EtcdMember.FillDisk
		Faults = append(Faults, Fault{"the disk of the etcd leader is full", fillDisk})
	}
}

func fillDisk(ctx context.Context, s *Set, _ *rand.Rand, during func(context.Context) error) error {
	leader, _, _, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if err := s.Etcd.Members[leader].FillDisk(ctx); err != nil {
		return err
	}
	// It has ended. This cuts the servers' connections to it.
	return errors.Join(s.killMember(leader), during(ctx), s.startMember(ctx, leader))
}

// moveLeader makes another member of etcd the leader. It tries again, because etcd refuses
// when it has just elected another leader, or the other member is slow.
func (s *Set) moveLeader(ctx context.Context) error {
	return poll.Until(ctx, time.Minute, func(ctx context.Context) error {
		leader, _, other, err := s.leader(ctx)
		if err != nil {
			return err
		}
		client, err := s.Etcd.NewClient(s.Etcd.Members[leader].Endpoint)
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.MoveLeader(ctx, other)
		return err
	})
}

// kill kills a process. It returns an error if the process reported a defect.
func kill(process *harness.Process) error {
	process.Kill()
	return process.Flaws()
}

// restartMembers kills members of etcd and starts them, in parallel.
func (s *Set) restartMembers(ctx context.Context, chosen func(member int) bool) error {
	errs := make([]error, len(s.Etcd.Members))
	each := func(do func(member int) error) {
		var doing sync.WaitGroup
		for member := range s.Etcd.Members {
			if chosen(member) && errs[member] == nil {
				doing.Go(func() { errs[member] = do(member) })
			}
		}
		doing.Wait()
	}
	each(s.killMember)
	each(func(member int) error { return s.startMember(ctx, member) })
	return errors.Join(errs...)
}
