// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestMakeRun runs the program of make run like a user.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", run, "./hack/run")
	build.Dir = harness.Root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build hack/run: %v\n%s", err, output)
	}
	server, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T, b *harness.Borough) *harness.Process {
		t.Helper()
		process, err := harness.StartProcess(run, "--bin="+filepath.Dir(server), "--state="+b.Dir, "--port="+strconv.Itoa(b.Port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = process.Stop() }) // also stops its children
		return process
	}
	ready := func(t *testing.T, process *harness.Process) {
		t.Helper()
		poll.Eventually(t, func() string {
			select {
			case <-process.Done():
				t.Fatal(process.Tail(30))
			default:
			}
			if !strings.Contains(process.Output(), "Ctrl-C stops") {
				return "it has not printed what to type next: " + process.Output()
			}
			return ""
		})
	}
	ended := func(t *testing.T, process *harness.Process) {
		t.Helper()
		select {
		case <-process.Done():
		case <-time.After(time.Minute):
			t.Fatalf("the program did not end\n%s", process.Tail(30))
		}
	}
	closed := func(t *testing.T, b *harness.Borough) {
		t.Helper()
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(b.Port)))
		if err != nil {
			t.Errorf("the server still runs: %v", err)
			return
		}
		listener.Close()
	}
	port := func(t *testing.T) int {
		t.Helper()
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		return port
	}

	t.Run("twice with the same data", func(t *testing.T) {
		t.Parallel()
		b := &harness.Borough{Dir: filepath.Join(t.TempDir(), "a user's", ".borough"), Port: port(t)}
		first := start(t, b)
		ready(t, first)
		_, command, _ := strings.Cut(first.Output(), "  export KUBECONFIG=")
		command, _, _ = strings.Cut(command, "\n")
		file, err := exec.CommandContext(t.Context(), "sh", "-c", "KUBECONFIG="+command+`; printf %s "$KUBECONFIG"`).Output()
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "KUBECONFIG", string(file), filepath.Join(b.Dir, "admin.kubeconfig"))
		kept, purged := newNamespace(t, b), newNamespace(t, b)
		deleteNamespace(t, b, purged)
		poll.Eventually(t, gone(t, b, purged)) // shows that the controller runs
		watch := b.HTTP(t).Open(t, "GET", api+"/pods?watch=1", nil)
		defer watch.Body.Close()
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		closed(t, b)

		b.Port = port(t)
		second := start(t, b)
		ready(t, second)
		if _, err := b.Client(t).TenancyV1().Namespaces().Get(t.Context(), kept, metav1.GetOptions{}); err != nil {
			t.Errorf("after the second start: %v", err)
		}
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
		for _, log := range []string{"apiserver.log", "controller-manager.log"} {
			if info, err := os.Stat(filepath.Join(b.Dir, log)); err != nil || info.Size() == 0 {
				t.Errorf("%s is missing or empty: %v", log, err)
			}
		}
	})
	t.Run("terminal that closes", func(t *testing.T) {
		t.Parallel()
		// A process that is started does not ignore what this one handles, also under nohup.
		handled := make(chan os.Signal, 1)
		signal.Notify(handled, syscall.SIGHUP)
		defer signal.Stop(handled)
		b := &harness.Borough{Dir: t.TempDir(), Port: port(t)}
		process := start(t, b)
		ready(t, process)
		if err := syscall.Kill(process.PID(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		ended(t, process)
		wantEqual(t, "exit code", process.ExitCode(), 0)
		closed(t, b)
	})
	t.Run("port taken", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		b := &harness.Borough{Dir: t.TempDir(), Port: listener.Addr().(*net.TCPAddr).Port}
		process := start(t, b)
		ended(t, process)
		wantEqual(t, "exit code", process.ExitCode(), 1)
		wantContains(t, process.Output(), "is in use", "make run PORT=")
	})
	t.Run("server that can't start", func(t *testing.T) {
		t.Parallel()
		b := &harness.Borough{Dir: t.TempDir(), Port: port(t)}
		if err := os.WriteFile(filepath.Join(b.Dir, "pki"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		process := start(t, b)
		ended(t, process)
		wantEqual(t, "exit code", process.ExitCode(), 1)
		wantContains(t, process.Output(), "borough-apiserver: ", filepath.Join(b.Dir, "pki"), "apiserver.log")
	})
	t.Run("server that dies", func(t *testing.T) {
		t.Parallel()
		b := &harness.Borough{Dir: t.TempDir(), Port: port(t)}
		process := start(t, b)
		ready(t, process)
		child, err := exec.CommandContext(t.Context(), "pgrep", "-P", strconv.Itoa(process.PID()), "borough-apiserv").Output()
		if err != nil {
			t.Skip("pgrep does not find the server: ", err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(child)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		ended(t, process)
		wantEqual(t, "exit code", process.ExitCode(), 1)
		wantContains(t, process.Output(), "borough-apiserver exited (signal: killed)")
		closed(t, b)
	})
}
