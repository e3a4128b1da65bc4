// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "syscall"

// attributes makes the kernel kill the process if the tests end without
// stopping it, for example after a timeout or a panic.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
