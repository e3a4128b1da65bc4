// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inpod runs parts of tests as in a Pod of a cluster.
package inpod

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Host is the address of the cluster.
const Host = "https://192.0.2.1:443"

// Run runs f on a thread that sees the address of the cluster and the token of a service
// account. It skips the test if it may not mount a directory.
func Run(t *testing.T, f func()) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	done := make(chan string)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		defer close(done)
		const token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		if err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_FS); err != nil {
			done <- err.Error()
			return
		}
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			done <- err.Error()
			return
		}
		if err := syscall.Mount("tmpfs", "/var/run", "tmpfs", 0, ""); err != nil {
			done <- err.Error()
			return
		}
		if err := os.MkdirAll(filepath.Dir(token), 0o700); err != nil {
			t.Error(err)
			return
		}
		if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	if reason := <-done; reason != "" {
		t.Skip("mount a directory: ", reason)
	}
}
