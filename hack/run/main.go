// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// run implements `make run`: it runs the API server and the controller manager as
// one foreground job. When the server is ready it prints what to type next. It
// shows the errors that either logs, and stops both when one exits or on a signal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "directory of the binaries")
	state := flag.String("state", ".borough", "directory of the data, keys, kubeconfigs and logs")
	port := flag.Int("port", 6443, "port on 127.0.0.1 to serve the API on")
	flag.Parse()

	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // the terminal was closed; nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	if err := run(ctx, *bin, *state, *port); err != nil {
		fmt.Fprintf(os.Stderr, "make run: %v\n", err)
		os.Exit(1)
	}
}

// run returns nil when ctx ends, and an error when a process exits by itself.
func run(ctx context.Context, bin, state string, port int) error {
	state, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("find the state directory: %w", err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if err := checkFree(port); err != nil {
		return err
	}

	began := time.Now()
	server, err := start(filepath.Join(bin, "borough-apiserver"), filepath.Join(state, "apiserver.log"),
		"--standalone", "--data-dir="+state, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port))
	if err != nil {
		return err
	}
	defer server.stop()
	if err := server.waitReady(ctx, port, filepath.Join(state, "pki", "ca.crt")); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}

	// Health and metrics of the controller are off: they would need a second
	// port, on which two clones on one machine would conflict.
	controller, err := start(filepath.Join(bin, "borough-controller-manager"), filepath.Join(state, "controller-manager.log"),
		"--kubeconfig="+filepath.Join(state, "controller.kubeconfig"), "--leader-elect=false", "--http-bind-address=")
	if err != nil {
		return err
	}
	// Deferred last, so that it stops first: otherwise the controller would log
	// connection errors.
	defer controller.stop()

	greet(state, port, time.Since(began))
	select {
	case <-ctx.Done():
		fmt.Println("\nStopping.")
		return nil
	case <-server.exited:
		return server.failure()
	case <-controller.exited:
		return controller.failure()
	}
}

// checkFree returns a helpful error for the most common mistake. The server binds
// the port itself, and fails if another process takes it in between.
func checkFree(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d is in use; choose another one: make run PORT=%d", port, port+1)
	}
	if err != nil {
		return fmt.Errorf("try port %d: %w", port, err)
	}
	return listener.Close()
}

// quoted returns a path for the command line of a shell.
func quoted(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$`&;|<>()*?[]{}#!") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func greet(state string, port int, took time.Duration) {
	fmt.Printf(`
Borough is ready at https://127.0.0.1:%d after %.1f s. In another terminal, type:

  export KUBECONFIG=%s
`, port, took.Seconds(), quoted(filepath.Join(state, "admin.kubeconfig")))
	if _, err := exec.LookPath("kubectl"); err != nil {
		fmt.Printf("  make kubectl && export PATH=%s:$PATH\n", quoted(filepath.Join(filepath.Dir(state), "bin")))
	}
	fmt.Printf(`  kubectl create namespace team-a
  kubectl get namespaces

Data and logs are in %s. Ctrl-C stops; the next make run continues with the same data.
`, state)
}
