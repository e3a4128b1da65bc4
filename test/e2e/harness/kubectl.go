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

// kubectlTimeout ends a kubectl that hangs.
const kubectlTimeout = 60 * time.Second

// Kubectl runs kubectl with all rights and returns what it wrote to its
// standard output. The test fails if kubectl does.
func (b *Borough) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, err := b.TryKubectl(t, "", args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

// KubectlFails runs kubectl, which must fail, and returns what it wrote to its
// standard error.
func (b *Borough) KubectlFails(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, err := b.TryKubectl(t, "", args...)
	if err == nil {
		t.Fatalf("kubectl %s: succeeded, want a failure\n%s%s", strings.Join(args, " "), stdout, stderr)
	}
	return stderr
}

// TryKubectl runs kubectl with the given standard input and returns both its
// outputs and how it ended.
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
	// kubectl keeps caches and preferences in the home directory.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(b.Dir, "admin.kubeconfig"), "HOME="+t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	return out.String(), errs.String(), err
}
