// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// attributes puts a process into a separate process group. Ctrl-C signals every
// process of the foreground group, but the two have to stop in order, on signals
// from this program. The kernel signals them if this program is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
