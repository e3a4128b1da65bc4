// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// kubectlTimeout is how long a kubectl may run before it is killed.
const kubectlTimeout = 5 * time.Minute

// Kubectl runs kubectl with an identity and separate caches.
type Kubectl struct {
	path string
	env  []string
}

// NewKubectl returns a kubectl that uses the kubeconfig, and that stores caches and
// preferences in the directory home.
func NewKubectl(path, kubeconfig, home string) *Kubectl {
	return &Kubectl{path, append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home)}
}

// WithEnv returns a kubectl with additional environment variables NAME=VALUE.
func (k *Kubectl) WithEnv(env ...string) *Kubectl {
	return &Kubectl{k.path, slices.Concat(k.env, env)}
}

// Run runs kubectl and returns its standard output. The test fails if kubectl
// does.
func (k *Kubectl) Run(t testing.TB, args ...string) string {
	t.Helper()
	return k.RunWith(t, "", args...)
}

// RunWith is Run with a standard input.
func (k *Kubectl) RunWith(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, err := k.Try(t.Context(), stdin, args...)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	return stdout
}

// Fails runs kubectl, which must fail, and returns its standard error.
func (k *Kubectl) Fails(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, err := k.Try(t.Context(), "", args...)
	if err == nil {
		t.Fatalf("kubectl %s: succeeded, want a failure\n%s%s", strings.Join(args, " "), stdout, stderr)
	}
	return stderr
}

// Watch runs a kubectl until the test ends, and returns the lines of its
// standard output. The channel is closed when kubectl ends.
func (k *Kubectl) Watch(t testing.TB, args ...string) <-chan string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), k.path, args...)
	cmd.Env = k.env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("read the output of kubectl: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start kubectl: %v", err)
	}
	lines := make(chan string)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-t.Context().Done():
			}
		}
		_ = cmd.Wait() // it was killed
	}()
	t.Cleanup(func() { <-done })
	return lines
}

// Try runs kubectl and returns its standard output, standard error and error.
func (k *Kubectl) Try(ctx context.Context, stdin string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubectlTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Env = k.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = waitDelay
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), err
}

// Kubectl runs kubectl as an administrator and returns its standard output. The test
// fails if kubectl fails.
func (b *Borough) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return b.adminKubectl(t).Run(t, args...)
}

// KubectlFails runs kubectl as an administrator and returns its standard error. The
// test fails if kubectl succeeds.
func (b *Borough) KubectlFails(t testing.TB, args ...string) string {
	t.Helper()
	return b.adminKubectl(t).Fails(t, args...)
}

// TryKubectl runs kubectl as an administrator with the given standard input. It returns
// the standard output, the standard error and the error of the process.
func (b *Borough) TryKubectl(t testing.TB, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return b.adminKubectl(t).Try(t.Context(), stdin, args...)
}

func (b *Borough) adminKubectl(t testing.TB) *Kubectl {
	t.Helper()
	if err := readSourcesInTest(); err != nil {
		t.Fatalf("read the sources of the binaries: %v", err)
	}
	path, err := KubectlPath()
	if err != nil {
		t.Fatalf("find kubectl: %v", err)
	}
	return NewKubectl(path, filepath.Join(b.Dir, "admin.kubeconfig"), t.TempDir())
}
