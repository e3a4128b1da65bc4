// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestEmptyKubeconfigInAPod reads a kubeconfig without content where the process could
// connect to the cluster that it runs in.
func TestEmptyKubeconfigInAPod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	inPod(t, func() {
		if config, err := (&Options{}).Config("test"); err != nil || config.Host != "https://192.0.2.1:443" {
			t.Errorf("without a kubeconfig: got %v, %v, want the cluster", config, err)
		}
		if config, err := (&Options{Kubeconfig: file}).Config("test"); err == nil || !strings.HasPrefix(err.Error(), "--kubeconfig="+file+": ") {
			t.Errorf("got %v, %v, want an error with the flag", config, err)
		}
	})
}

// inPod runs f on a thread that sees the token of a service account, as in a Pod.
func inPod(t *testing.T, f func()) {
	t.Helper()
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
