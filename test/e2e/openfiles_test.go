// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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
	program, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	const files, reserved = 512, 256
	dir := t.TempDir()
	server := harness.StartForTest(t, "sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files),
		program, "--standalone", "--data-dir="+dir, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port))
	var client *http.Client
	var config *rest.Config
	err = server.Await(t.Context(), func(ctx context.Context) (err error) {
		if config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig")); err != nil {
			return err
		}
		if client, err = rest.HTTPClientFor(config); err != nil {
			return err
		}
		response, err := client.Get(config.Host + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %s", response.Status)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for range files + 100 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	open := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", server.PID()))
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
	response, err := client.Post(config.Host+api+"/namespaces", "application/json", strings.NewReader(`{"metadata":{"name":"served"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Errorf("create a Namespace: got %s", response.Status)
	}
	if n := open(); n > files-reserved/2 {
		t.Errorf("the server has %d open files", n)
	}
	if strings.Contains(server.Output(), "too many open files") {
		t.Error("the server had no file left")
	}
}
