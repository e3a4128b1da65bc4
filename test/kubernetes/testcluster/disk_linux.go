// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// FillDisk makes the writes of the member fail, as a full disk does, by limiting the
// size of its files. It returns when the member has ended, and an error that wraps
// errors.ErrUnsupported if the operating system cannot limit that of a running process.
func (m *EtcdMember) FillDisk(ctx context.Context) error {
	if err := unix.Prlimit(m.Process.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: unix.RLIM_INFINITY}, nil); err != nil {
		return fmt.Errorf("limit the size of the files of %s: %w", m.name, err)
	}
	select {
	case <-m.Process.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until %s cannot write: %w", m.name, context.Cause(ctx))
	}
}
