// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

var shared struct {
	mu     sync.Mutex
	main   bool   // Main runs the tests
	temp   string // the directory for temporary files before the tests change TMPDIR
	server *Server
	err    error
}

// Shared returns the server that the tests of a package share. The first call starts it,
// Main stops it: TestMain of the package must call Main. If the test has failed at its end,
// it logs what the servers of the process have logged.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		t.Fatal("boroughtest.Shared needs a TestMain that stops the server: func TestMain(m *testing.M) { os.Exit(boroughtest.Main(m)) }")
	}
	t.Cleanup(func() { logIfFailed(t) }) // also if the start fails
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = startShared()
	}
	if shared.err != nil {
		t.Fatalf("start Borough: %v", shared.err)
	}
	return shared.server
}

func startShared() (*Server, error) {
	dir, err := os.MkdirTemp(shared.temp, "boroughtest-")
	if err != nil {
		return nil, err
	}
	s, err := start(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Main is for TestMain. It runs the tests, stops the server that they have shared, removes
// its data, and returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(boroughtest.Main(m)) }
func Main(m *testing.M) (code int) {
	shared.mu.Lock()
	shared.main, shared.temp = true, os.TempDir()
	shared.mu.Unlock()

	code = m.Run()

	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.main = false
	if shared.server == nil {
		return code
	}
	if err := errors.Join(shared.server.stop(), os.RemoveAll(shared.server.dir)); err != nil {
		fmt.Fprintf(os.Stderr, "stop Borough: %v\n", err)
		code = max(code, 1)
	}
	return code
}
