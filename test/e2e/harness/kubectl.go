// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubectlTimeout is how long a kubectl may run before it is killed.
const kubectlTimeout = 60 * time.Second

// Kubectl runs kubectl as the admin and returns its standard output. The test
// fails if kubectl fails.
func (b *Borough) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, err := b.TryKubectl(t, "", args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

// KubectlFails runs kubectl as the admin and returns its standard error. The
// test fails if kubectl succeeds.
func (b *Borough) KubectlFails(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, err := b.TryKubectl(t, "", args...)
	if err == nil {
		t.Fatalf("kubectl %s: succeeded, want a failure\n%s%s", strings.Join(args, " "), stdout, stderr)
	}
	return stderr
}

// TryKubectl runs kubectl as the admin with the given standard input. It returns
// the standard output, the standard error and the error of the process.
func (b *Borough) TryKubectl(t testing.TB, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path, err := KubectlPath()
	if err != nil {
		t.Fatalf("find kubectl: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), kubectlTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	// kubectl stores caches and preferences in the home directory.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(b.Dir, "admin.kubeconfig"), "HOME="+t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	return out.String(), errs.String(), err
}
