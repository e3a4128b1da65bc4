// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestConnectionsLeaveFiles opens more connections than a server may have open files. The
// embedded etcd would end the process if it could not open a file.
func TestConnectionsLeaveFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the open files of another process can be counted only in /proc")
	}
	t.Parallel()
	b := harness.New(t)
	program, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	if b.Port, err = harness.FreePort(); err != nil {
		t.Fatal(err)
	}
	const files, reserved = 512, 256
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), program}
	if b.Server, err = harness.StartProcess("sh", append(limited, b.ServerFlags()...)...); err != nil {
		t.Fatal(err)
	}
	if err := b.AwaitServer(t.Context(), "/readyz"); err != nil {
		t.Fatal(err)
	}
	client := b.HTTP(t)
	wantAnswer(t, client.Do(t, http.MethodGet, "/readyz", nil), http.StatusOK)

	for range files + 100 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.Port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	open := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.Server.PID()))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	poll.Eventually(t, func() string {
		if n := open(); n < files-reserved {
			return fmt.Sprintf("the server has %d open files", n)
		}
		return ""
	})
	// The connection of the client is older.
	wantAnswer(t, client.Do(t, http.MethodPost, api+"/namespaces", []byte(`{"metadata":{"name":"served"}}`)), http.StatusCreated)
	if n := open(); n > files-reserved/2 {
		t.Errorf("the server has %d open files", n)
	}
	if strings.Contains(b.Server.Output(), "too many open files") {
		t.Error("the server had no file left")
	}
}
