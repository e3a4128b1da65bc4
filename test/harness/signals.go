// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"syscall"
)

// Pause stops the process until Resume. To its peers it is like a machine that
// hangs.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume continues a process after Pause.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("send %s to %s: %w", signal, p.Name, err)
	}
	return nil
}
