// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

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

	"k8s.io/client-go/rest"
)

// kubectlTimeout bounds a run of kubectl.
const kubectlTimeout = 2 * time.Minute

// Kubectl runs the cluster's kubectl with its own identity and caches.
type Kubectl struct {
	env []string
}

// Kubectl returns a kubectl with all rights.
func (c *Cluster) Kubectl(t testing.TB) *Kubectl { return c.KubectlAs(t, c.AdminConfig()) }

// KubectlAs returns a kubectl with the identity of the configuration.
func (c *Cluster) KubectlAs(t testing.TB, config *rest.Config) *Kubectl {
	t.Helper()
	kubectl, err := c.newKubectl(config)
	if err != nil {
		t.Fatalf("set up kubectl: %v", err)
	}
	return kubectl
}

func (c *Cluster) newKubectl(config *rest.Config) (*Kubectl, error) {
	home, err := os.MkdirTemp(c.Dir, "kubectl-")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.WriteKubeconfig(filepath.Base(home), config)
	if err != nil {
		return nil, err
	}
	return &Kubectl{append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home)}, nil
}

// WithEnv returns a kubectl with additional environment variables NAME=VALUE.
func (k *Kubectl) WithEnv(env ...string) *Kubectl {
	return &Kubectl{slices.Concat(k.env, env)}
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
	path, err := Binary("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
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
	path, err := Binary("kubectl")
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, kubectlTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = k.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.WaitDelay = time.Second
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), err
}
