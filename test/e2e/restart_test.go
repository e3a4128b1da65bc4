// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/e2e/harness"
)

// TestRestart checks that nothing is lost, neither by an orderly end nor by a
// crash, and that the old kubeconfigs go on working.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	pod := createPod(t, b, ns, newPod("p"))
	config := b.Config(t, "admin")
	for _, end := range []struct {
		name string
		do   func() error
	}{
		{"SIGTERM", func() error { return b.Server.Stop() }},
		{"SIGKILL", func() error { b.Server.Kill(); return nil }},
		{"SIGTERM after a crash", func() error { return b.Server.Stop() }},
	} {
		createPod(t, b, ns, newPod(strings.ToLower(strings.ReplaceAll(end.name, " ", "-"))))
		if err := end.do(); err != nil {
			t.Fatalf("%s: %v", end.name, err)
		}
		if err := b.StartServer(t.Context()); err != nil {
			t.Fatalf("start after %s: %v", end.name, err)
		}
		got, err := b.Client(t).TenancyV1().Pods(ns).Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("after %s: %v", end.name, err)
		}
		wantEqual(t, "the Pod after "+end.name, got, pod)
	}
	list, err := b.Client(t).TenancyV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "Pods", len(list.Items), 4)
	wantAnswer(t, harness.NewHTTP(t, config).Do(t, "GET", api+"/namespaces", nil), 200)

	// The controller has seen the server come and go, and works on.
	if err := b.Client(t).TenancyV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, gone(t, b, ns))
}

// TestDefaultNamespace checks that it is there from the first start and after.
func TestDefaultNamespace(t *testing.T) {
	t.Parallel()
	got, err := borough.Client(t).TenancyV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "label", got.Labels["kubernetes.io/metadata.name"], "default")
}

// failsToStart starts a server that must not start, and returns what it said,
// which must be one line.
func failsToStart(t *testing.T, flags ...string) string {
	t.Helper()
	path, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	process, err := harness.StartProcess(path, flags...)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-process.Done():
	case <-time.After(time.Minute):
		process.Kill()
		t.Fatalf("the server did not give up\n%s", process.Tail(30))
	}
	if process.ExitCode() == 0 {
		t.Errorf("the exit code is 0, want another\n%s", process.Output())
	}
	if err := process.Flaws(); err != nil {
		t.Error(err)
	}
	var said []string
	for line := range strings.Lines(process.Output()) {
		// What was logged on the way, for information, is not what it said.
		if !strings.HasPrefix(line, "I") && !strings.HasPrefix(line, "W") && !strings.HasPrefix(line, "{") {
			said = append(said, strings.TrimSpace(line))
		}
	}
	if len(said) != 1 {
		t.Errorf("got %d lines, want one:\n%s", len(said), process.Output())
	}
	return strings.Join(said, "\n")
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	// started returns the data directory of a server that ran before.
	started := func(t *testing.T) *harness.Borough {
		t.Helper()
		b := harness.New(t)
		if err := b.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Server.Stop(); err != nil {
			t.Fatal(err)
		}
		b.Server = nil
		return b
	}
	write := func(t *testing.T, path, content string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	t.Run("neither standalone nor hosted", func(t *testing.T) {
		t.Parallel()
		wantContains(t, failsToStart(t), "--standalone", "--kubeconfig")
	})
	t.Run("unknown flag", func(t *testing.T) {
		t.Parallel()
		wantContains(t, failsToStart(t, "--standalone", "--nonsense"), "unknown flag: --nonsense")
	})
	t.Run("flag with a bad value", func(t *testing.T) {
		t.Parallel()
		wantContains(t, failsToStart(t, "--standalone", "--data-dir="+t.TempDir(), "--secure-port=many"), "--secure-port", "many")
	})
	t.Run("port in use", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		b := harness.New(t)
		b.Port = listener.Addr().(*net.TCPAddr).Port
		wantContains(t, failsToStart(t, b.ServerFlags()...), strconv.Itoa(b.Port), "address already in use")
	})
	t.Run("data directory in use", func(t *testing.T) {
		t.Parallel()
		b := harness.New(t)
		if err := b.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := &harness.Borough{Dir: b.Dir}
		var err error
		if other.Port, err = harness.FreePort(); err != nil {
			t.Fatal(err)
		}
		wantContains(t, failsToStart(t, other.ServerFlags()...), b.Dir)
		// The first one takes no harm, and its kubeconfig still leads to it.
		wantAnswer(t, b.HTTP(t).Do(t, "GET", api+"/namespaces/default", nil), 200)
	})
	t.Run("data directory is a file", func(t *testing.T) {
		t.Parallel()
		b := harness.New(t)
		b.Dir = write(t, filepath.Join(b.Dir, "file"), "")
		wantContains(t, failsToStart(t, append(b.ServerFlags(), "--secure-port=1234")...), b.Dir)
	})
	for file, content := range map[string]string{
		"ca.key":        "half of a k",
		"ca.crt":        "-----BEGIN CERTIFICATE-----\nMIIB",
		"apiserver.key": "",
		"admin.crt":     "",
	} {
		t.Run("half-written "+file, func(t *testing.T) {
			t.Parallel()
			b := started(t)
			path := write(t, filepath.Join(b.Dir, "pki", file), content)
			wantContains(t, failsToStart(t, b.ServerFlags()...), path)
		})
	}
	t.Run("unreadable key", func(t *testing.T) {
		t.Parallel()
		b := started(t)
		path := filepath.Join(b.Dir, "pki", "ca.key")
		// A directory can't be read as a file, not even by root.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		wantContains(t, failsToStart(t, b.ServerFlags()...), path)
	})
	t.Run("half-written kubeconfig", func(t *testing.T) {
		t.Parallel()
		b := started(t)
		write(t, filepath.Join(b.Dir, "admin.kubeconfig"), "apiVersion: v1\nclus")
		// It holds nothing that is not elsewhere, so it is written anew.
		if err := b.StartServer(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
