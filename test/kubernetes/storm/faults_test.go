// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/borough-io/borough/test/harness"
)

// writesDuringFault is the number of writes to wait for before a fault ends, if
// the servers can still acknowledge writes.
const writesDuringFault = 20

// faults are the kinds of failures. Each has ended when its function returns.
var faults = []struct {
	name   string
	inject func(context.Context, *storm, *rand.Rand) error
}{
	{"a server is killed", func(ctx context.Context, s *storm, r *rand.Rand) error {
		server := &s.servers[r.IntN(len(s.servers))]
		return errors.Join(kill(server.Server), s.awaitWrites(ctx), server.start(ctx))
	}},
	{"both controllers are killed", func(ctx context.Context, s *storm, _ *rand.Rand) error {
		err := errors.Join(kill(s.servers[0].Controller), kill(s.servers[1].Controller), s.awaitWrites(ctx))
		for i := range s.servers {
			err = errors.Join(err, s.servers[i].StartController(ctx))
		}
		return err
	}},
	{"an etcd follower is killed", func(ctx context.Context, s *storm, r *rand.Rand) error {
		leader, _, _, err := s.leader(ctx)
		if err != nil {
			return err
		}
		n := len(s.etcd.Members)
		follower := (leader + 1 + r.IntN(n-1)) % n
		return errors.Join(s.killMember(follower), s.awaitWrites(ctx), s.startMember(ctx, follower))
	}},
	{"the etcd leader is killed", func(ctx context.Context, s *storm, _ *rand.Rand) error {
		leader, _, _, err := s.leader(ctx)
		if err != nil {
			return err
		}
		return errors.Join(s.killMember(leader), s.awaitWrites(ctx), s.startMember(ctx, leader))
	}},
	{"the etcd leader is moved", func(ctx context.Context, s *storm, _ *rand.Rand) error {
		leader, _, other, err := s.leader(ctx)
		if err != nil {
			return err
		}
		client, err := s.newClient(s.etcd.Members[leader].Endpoint)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.MoveLeader(ctx, other); err != nil {
			return fmt.Errorf("move the leader: %w", err)
		}
		return s.awaitWrites(ctx)
	}},
	{"responses of etcd are lost", func(ctx context.Context, s *storm, _ *rand.Rand) error {
		s.losing.Store(true)
		defer s.losing.Store(false)
		var err error
		for range 10 { // only few creates are deleted at once
			err = errors.Join(err, s.awaitWrites(ctx))
		}
		return err
	}},
	{"two etcd members are killed", func(ctx context.Context, s *storm, r *rand.Rand) error {
		survivor := r.IntN(len(s.etcd.Members))
		return s.restartMembers(ctx, func(member int) bool { return member != survivor })
	}},
	{"everything is killed", func(ctx context.Context, s *storm, _ *rand.Rand) error {
		var errs []error
		for i := range s.servers {
			errs = append(errs, kill(s.servers[i].Server), kill(s.servers[i].Controller))
		}
		errs = append(errs, s.restartMembers(ctx, func(int) bool { return true }))
		for i := range s.servers {
			errs = append(errs, s.servers[i].start(ctx), s.servers[i].StartController(ctx))
		}
		return errors.Join(errs...)
	}},
}

// kill kills a process. It returns an error if the process reported a defect.
func kill(process *harness.Process) error {
	process.Kill()
	return process.Flaws()
}

// restartMembers kills members of etcd and starts them, in parallel.
func (s *storm) restartMembers(ctx context.Context, chosen func(member int) bool) error {
	errs := make([]error, len(s.etcd.Members))
	each := func(do func(member int) error) {
		var doing sync.WaitGroup
		for member := range s.etcd.Members {
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

// awaitWrites returns after writesDuringFault writes to the steady Namespace.
func (s *storm) awaitWrites(ctx context.Context) error {
	for range writesDuringFault {
		if err := awaitSignal(ctx, s.written[steady]); err != nil {
			return fmt.Errorf("wait for writes during the fault: %w", err)
		}
	}
	return nil
}
