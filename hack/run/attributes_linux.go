// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// attributes puts a process into a group of its own: Ctrl-C goes to every
// process of the terminal's foreground group, and the two are to get one signal,
// from here, in order. Only if this program is killed, the kernel sends it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
