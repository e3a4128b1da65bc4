// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "syscall"

// attributes puts a process into a separate process group. Ctrl-C signals every
// process of the foreground group, but the two have to stop in order, on signals
// from this program.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
