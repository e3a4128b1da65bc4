// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// fillDisk makes the writes of the leader of etcd fail, as a full disk does, by
// limiting the size of its files.
func fillDisk(ctx context.Context, t *testing.T, s *site, l *load) error {
	leader, _, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if err := unix.Prlimit(leader.Process.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: unix.RLIM_INFINITY}, nil); err != nil {
		return fmt.Errorf("limit the size of etcd's files: %w", err)
	}
	select {
	case <-leader.Process.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.Log(leader.Process.Tail(2))
	served, err := l.awaitAll(ctx)
	t.Log(served)
	return errors.Join(err, leader.Start(ctx))
}
