// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/test/harness"
)

// issue runs the subcommand kubeconfig for the running server, and returns the path
// of the kubeconfig.
func issue(t *testing.T, b *harness.Borough, flags ...string) string {
	t.Helper()
	program, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	args := append([]string{"kubeconfig", "--data-dir=" + b.Dir, "--output=" + file}, flags...)
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("borough-apiserver %v: %v\n%s", args, err, out)
	}
	return file
}

// loadKubeconfig returns the configuration of a client from a file.
func loadKubeconfig(t *testing.T, file string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// kubectlFor returns a kubectl that uses the kubeconfig.
func kubectlFor(t *testing.T, kubeconfig string) *harness.Kubectl {
	t.Helper()
	path, err := harness.KubectlPath()
	if err != nil {
		t.Fatal(err)
	}
	return harness.NewKubectl(path, kubeconfig, t.TempDir())
}

// TestIssuedKubeconfig checks that the server recognizes the user and the groups of a
// kubeconfig that was issued while it runs.
func TestIssuedKubeconfig(t *testing.T) {
	t.Parallel()
	alice := kubectlFor(t, issue(t, borough, "--user=alice", "--group=team-a"))
	wantContains(t, alice.Fails(t, "get", "--raw", api+"/namespaces"), "Forbidden", `User "alice" cannot list resource "namespaces"`)
	wantEqual(t, "/readyz", alice.Run(t, "get", "--raw", "/readyz"), "ok")

	root := kubectlFor(t, issue(t, borough, "--user=root", "--group=team-a", "--group=system:masters", "--allow-system-masters"))
	wantContains(t, root.Run(t, "get", "--raw", api+"/namespaces/default"), `"kind":"Namespace"`)
}
