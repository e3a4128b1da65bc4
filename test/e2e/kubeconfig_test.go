// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
)

// TestServerEndsWhenItsKubeconfigChanges renews the kubeconfig of a server behind a cluster,
// which does not respond.
func TestServerEndsWhenItsKubeconfigChanges(t *testing.T) {
	t.Parallel()
	program, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	write := func(token string) {
		content := `{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "` + token + `"}}],
			"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c"}`
		if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	server := harness.StartForTest(t, program, "--kubeconfig="+kubeconfig, "--data-dir="+dir, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port))
	client := &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", port), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if err := server.Await(t.Context(), func(ctx context.Context) error { return harness.GetOK(ctx, client, "/livez", nil) }); err != nil {
		t.Fatal(err)
	}
	write("renewed")
	select {
	case <-server.Done():
	case <-time.After(time.Minute):
		t.Fatal("the server continues with the old kubeconfig")
	}
	if want := "borough-apiserver: --kubeconfig=" + kubeconfig + " has changed: "; server.ExitCode() != 1 || !strings.Contains(server.Output(), want) {
		t.Errorf("exit code %d\n%s\nwant 1, and %q", server.ExitCode(), server.Tail(20), want)
	}
}
