// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package harness

import "syscall"

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
