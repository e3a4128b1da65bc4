// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

// Borough is a standalone server with its data directory and, once started, its
// controller.
type Borough struct {
	Dir        string // the data directory
	Port       int
	Server     *Process // nil before StartServer
	Controller *Process // nil before StartController
	// ControllerURL is where the controller serves its health and metrics.
	ControllerURL string
}

// New returns a Borough without starting it. When the test ends, its processes
// are stopped, and the test fails if they do not stop cleanly.
func New(t *testing.T) *Borough {
	t.Helper()
	b := &Borough{Dir: t.TempDir()}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(b.Logs())
		}
	})
	return b
}

// Start starts the server and the controller.
func (b *Borough) Start(ctx context.Context) error {
	if err := b.StartServer(ctx); err != nil {
		return err
	}
	return b.StartController(ctx)
}

// StartServer starts or restarts the server, and returns once it is ready.
func (b *Borough) StartServer(ctx context.Context, flags ...string) error {
	return b.StartServerUntil(ctx, "/readyz", flags...)
}

// StartServerUntil starts or restarts the server, and returns once a GET of the path
// returns 200.
func (b *Borough) StartServerUntil(ctx context.Context, path string, flags ...string) error {
	program, err := Binary("borough-apiserver")
	if err != nil {
		return err
	}
	if b.Port == 0 {
		if b.Port, err = FreePort(); err != nil {
			return err
		}
	}
	b.Server, err = StartProcess(program, append(b.ServerFlags(), flags...)...)
	if err != nil {
		return err
	}
	return b.AwaitServer(ctx, path)
}

// AwaitServer returns once a GET of the path returns 200.
func (b *Borough) AwaitServer(ctx context.Context, path string) error {
	return b.Server.Await(ctx, func(ctx context.Context) error {
		config, err := b.LoadConfig("admin")
		if err != nil {
			return err
		}
		return GetOK(ctx, config, path, nil)
	})
}

// ServerFlags returns the flags that StartServer always passes to the server.
func (b *Borough) ServerFlags() []string {
	return []string{"--standalone", "--data-dir=" + b.Dir, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(b.Port)}
}

// StartController starts the controller and returns once it is ready.
func (b *Borough) StartController(ctx context.Context, flags ...string) error {
	path, err := Binary("borough-controller-manager")
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	b.Controller, err = StartProcess(path, append([]string{
		"--kubeconfig=" + filepath.Join(b.Dir, "controller.kubeconfig"),
		"--leader-elect=false",
		"--http-bind-address=" + address,
	}, flags...)...)
	b.ControllerURL = "http://" + address
	if err != nil {
		return err
	}
	return b.Controller.Await(ctx, func(ctx context.Context) error {
		return GetOK(ctx, &rest.Config{Host: b.ControllerURL}, "/readyz", nil)
	})
}

// Stop stops the controller, then the server. It returns an error if a process
// did not end cleanly, had a data race or panicked.
func (b *Borough) Stop() error {
	return errors.Join(b.Controller.StopRunning(), b.Server.StopRunning())
}

// Logs returns the end of the output of each process.
func (b *Borough) Logs() string {
	var logs []string
	for _, process := range []*Process{b.Server, b.Controller} {
		if process != nil {
			logs = append(logs, process.Tail(60))
		}
	}
	return strings.Join(logs, "\n")
}

// LoadConfig returns a client configuration from one of the kubeconfigs that the
// server writes: admin or controller. Its client has no rate limit.
func (b *Borough) LoadConfig(identity string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.Dir, identity+".kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Config is LoadConfig for a server that has been started. It fails the test on
// an error.
func (b *Borough) Config(t testing.TB, identity string) *rest.Config {
	t.Helper()
	if err := readSourcesInTest(); err != nil {
		t.Fatalf("read the sources of the binaries: %v", err)
	}
	config, err := b.LoadConfig(identity)
	if err != nil {
		t.Fatalf("load the kubeconfig of %s: %v", identity, err)
	}
	return config
}

// Client returns a typed client that authenticates as an administrator.
func (b *Borough) Client(t testing.TB) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(b.Config(t, "admin"))
	if err != nil {
		t.Fatalf("create a client: %v", err)
	}
	return client
}
