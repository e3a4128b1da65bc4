// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
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
	wantContains(t, alice.Fails(t, "get", "pods", "-A"), "Forbidden", `User "alice" cannot list resource "pods"`)
	wantEqual(t, "/readyz", alice.Run(t, "get", "--raw", "/readyz"), "ok")

	ns := newNamespace(t, borough)
	borough.Kubectl(t, "create", "rolebinding", "alice", "-n", ns, "--clusterrole=edit", "--user=alice")
	wantContains(t, alice.RunWith(t, podManifest, "create", "-n", ns, "-f", "-"), "created")

	root := kubectlFor(t, issue(t, borough, "--user=root", "--group=team-a", "--group=system:masters", "--allow-system-masters"))
	wantContains(t, root.Run(t, "get", "--raw", api+"/namespaces/default"), `"kind":"Namespace"`)
}

// TestServiceAccountStandIn checks that a certificate can have the name and the groups
// of a service account, as docs/authentication.md shows, and has its rights.
func TestServiceAccountStandIn(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	builder := kubectlFor(t, issue(t, borough, documented(t, "program")...))
	wantContains(t, builder.Fails(t, "get", "po", "-n", ns), `User "system:serviceaccount:team-a:builder" cannot list resource`)
	borough.Kubectl(t, "create", "rolebinding", "builder", "-n", ns, "--clusterrole=view", "--serviceaccount=team-a:builder")
	wantEqual(t, "Pods", builder.Run(t, "get", "po", "-n", ns, "-o", "name"), "")
}

// TestCertificateExpires checks that the server rejects a certificate that has expired,
// although it has cached its user and the connection is open.
func TestCertificateExpires(t *testing.T) {
	t.Parallel()
	var client harness.HTTP
	for _, expires := range []string{"10s", "20s", "40s"} { // until one is used before it expires
		client = harness.NewHTTP(t, loadKubeconfig(t, issue(t, borough, "--user=brief", "--expires="+expires)))
		answer := client.Do(t, "GET", allPods, nil)
		if answer.Code != 401 {
			wantStatus(t, answer, 403, `User "brief" cannot list`)
			break
		}
	}
	poll.Eventually(t, func() string {
		if answer := client.Do(t, "GET", allPods, nil); answer.Code != 401 {
			return answer.String()
		}
		return ""
	})
}

// TestRotateCA replaces the CA as docs/authentication.md describes.
func TestRotateCA(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	restart := func(flags ...string) {
		t.Helper()
		if err := b.StartServer(t.Context(), flags...); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-o", "errexit", "-o", "nounset", "-c"}, strings.Join(documented(t, name), "\n"))...)
		cmd.Env = append(os.Environ(), "DATA_DIR="+b.Dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("the commands named %s: %v\n%s", name, err, out)
		}
	}
	stop := func() {
		t.Helper()
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
		b.Server, b.Controller = nil, nil
	}
	alice := func(kubeconfig string) {
		t.Helper()
		wantStatus(t, harness.NewHTTP(t, loadKubeconfig(t, kubeconfig)).Do(t, "GET", allPods, nil), 403, `User "alice" cannot list`)
	}

	restart()
	first, firstAdmin := issue(t, b, "--user=alice"), b.Config(t, "admin")
	alice(first)
	stop()
	run("rotate-ca")
	var flags []string
	for _, flag := range documented(t, "rotate-ca-flags") {
		flags = append(flags, os.Expand(flag, func(string) string { return b.Dir }))
	}
	restart(flags...)
	// Both CAs are in force, and clients of both accept the certificate of the server.
	second := issue(t, b, "--user=alice")
	alice(first)
	alice(second)
	wantAnswer(t, harness.NewHTTP(t, firstAdmin).Do(t, "GET", allPods, nil), 200)
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()

	run("rotate-ca-end")
	restart()
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	alice(second)
	alice(issue(t, b, "--user=alice"))
	wantContains(t, kubectlFor(t, first).Fails(t, "get", "--raw", allPods), "certificate signed by unknown authority")
	trusting := rest.CopyConfig(firstAdmin)
	trusting.CAData = b.Config(t, "admin").CAData
	wantStatus(t, harness.NewHTTP(t, trusting).Do(t, "GET", allPods, nil), 401, "Unauthorized")
}

// documented returns the lines of the block of docs/authentication.md that a comment
// names.
func documented(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root, "docs", "authentication.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?ms)<!-- ` + name + ` -->\n *` + "```" + `\w*\n(.*?)^ *` + "```").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatalf("docs/authentication.md has no block named %s", name)
	}
	var lines []string
	for line := range strings.Lines(block[1]) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}
