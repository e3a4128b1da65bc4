// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestRestart checks that no object is lost when the server is stopped or crashes,
// and that the old kubeconfigs still work.
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

	// The controller still works after the restarts of the server.
	if err := b.Client(t).TenancyV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, gone(t, b, ns))
}

// TestRestartWithoutData removes etcd/ while the server is stopped. The resourceVersions
// of the new server are lower than those that the controller has seen, but it continues
// to purge.
func TestRestartWithoutData(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	for i := range 100 {
		createPod(t, b, ns, newPod(strconv.Itoa(i)))
	}
	deleteNamespace(t, b, ns)
	poll.Eventually(t, gone(t, b, ns))
	if err := b.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.Dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns = newNamespace(t, b)
	deleteNamespace(t, b, ns)
	poll.Eventually(t, gone(t, b, ns))
}

// TestDefaultNamespace checks that the Namespace default exists from the first
// start on.
func TestDefaultNamespace(t *testing.T) {
	t.Parallel()
	got, err := borough.Client(t).TenancyV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "label", got.Labels["kubernetes.io/metadata.name"], "default")
}

// failsToStart checks that the server exits with an error of one line, and returns
// it.
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
		t.Fatalf("the server did not exit\n%s", process.Tail(30))
	}
	if process.ExitCode() == 0 {
		t.Errorf("got exit code 0, want another\n%s", process.Output())
	}
	if err := process.Flaws(); err != nil {
		t.Error(err)
	}
	var errorLines []string
	for line := range strings.Lines(process.Output()) {
		// Skip log messages for information and warnings.
		if !strings.HasPrefix(line, "I") && !strings.HasPrefix(line, "W") && !strings.HasPrefix(line, "{") {
			errorLines = append(errorLines, strings.TrimSpace(line))
		}
	}
	if len(errorLines) != 1 {
		t.Errorf("got %d lines, want one:\n%s", len(errorLines), process.Output())
	}
	return strings.Join(errorLines, "\n")
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	first := harness.New(t)
	if err := first.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	// started returns a server with the data of one that has run once and was stopped.
	started := func(t *testing.T) *harness.Borough {
		t.Helper()
		b := harness.New(t)
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		b.Port = port
		if err := os.CopyFS(b.Dir, os.DirFS(first.Dir)); err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(t *testing.T, path, content string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	t.Run("neither standalone nor in a cluster", func(t *testing.T) {
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
	t.Run("file with an error of several lines", func(t *testing.T) {
		t.Parallel()
		b := harness.New(t)
		file := write(t, filepath.Join(t.TempDir(), "encryption.yaml"), "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: []\nresources: []\n")
		wantContains(t, failsToStart(t, append(b.ServerFlags(), "--secure-port=1234", "--encryption-provider-config="+file)...), file, `line 4: key "resources" already set in map`)
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
		// The first server still works, and so does its kubeconfig.
		wantAnswer(t, b.HTTP(t).Do(t, "GET", api+"/namespaces/default", nil), 200)
	})
	t.Run("data directory is a file", func(t *testing.T) {
		t.Parallel()
		b := harness.New(t)
		b.Dir = write(t, filepath.Join(b.Dir, "file"), "")
		wantContains(t, failsToStart(t, append(b.ServerFlags(), "--secure-port=1234")...), b.Dir)
	})
	t.Run("etcd log is truncated", func(t *testing.T) {
		t.Parallel()
		b := started(t)
		segments, err := filepath.Glob(filepath.Join(b.Dir, "etcd", "member", "wal", "*.wal"))
		if err != nil || len(segments) != 1 {
			t.Fatalf("found the log files %v: %v", segments, err)
		}
		if err := os.Truncate(segments[0], 1000); err != nil {
			t.Fatal(err)
		}
		wantContains(t, failsToStart(t, b.ServerFlags()...), segments[0], "its end is missing", "restore this directory from a backup")
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
	t.Run("CA that is not valid yet", func(t *testing.T) {
		t.Parallel()
		b := started(t)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		tomorrow := time.Now().Add(24 * time.Hour)
		ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "ca", NotBefore: tomorrow}, key)
		if err != nil {
			t.Fatal(err)
		}
		keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		certPEM, err := cert.EncodeCertificates(ca)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(b.Dir, "pki", "ca.key"), string(keyPEM))
		path := write(t, filepath.Join(b.Dir, "pki", "ca.crt"), string(certPEM))
		wantContains(t, failsToStart(t, b.ServerFlags()...), path, "is not valid before "+tomorrow.UTC().Format(time.RFC3339), "set the clock", "delete "+filepath.Join(b.Dir, "pki"))
	})
	t.Run("unreadable key", func(t *testing.T) {
		t.Parallel()
		b := started(t)
		path := filepath.Join(b.Dir, "pki", "ca.key")
		// Not even root can read a directory as a file.
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
		// All that it contains is stored elsewhere too, so it is written again.
		if err := b.StartServer(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
