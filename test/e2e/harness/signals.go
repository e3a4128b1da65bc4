// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"syscall"
)

// Pause makes the process stand still where it is, until Resume: what its peers
// see of a machine that hangs.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a process go on that Pause made stand still.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("send %s to %s: %w", signal, p.Name, err)
	}
	return nil
}
