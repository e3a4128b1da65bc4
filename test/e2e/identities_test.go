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

// TestRotateCA replaces the CA of two servers as docs/authentication.md describes. They
// have an etcd each, which has nothing to do with it.
func TestRotateCA(t *testing.T) {
	t.Parallel()
	b, other := harness.New(t), harness.New(t)
	servers := []*harness.Borough{b, other}
	// start starts a server. The certificate of the other one is valid for another name.
	start := func(b *harness.Borough, flags ...string) {
		t.Helper()
		var expanded []string
		if b == other {
			expanded = append(expanded, "--external-hostname=other.example.com")
		}
		for _, flag := range flags {
			expanded = append(expanded, os.Expand(flag, func(string) string { return b.Dir }))
		}
		if err := b.StartServer(t.Context(), expanded...); err != nil {
			t.Fatal(err)
		}
	}
	shell := func(script string, env ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-o", "errexit", "-o", "nounset", "-c", script)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	// stop stops all servers, and runs the commands of that name for each.
	stop := func(name string) {
		t.Helper()
		for _, b := range servers {
			if err := b.Stop(); err != nil {
				t.Fatal(err)
			}
			b.Server, b.Controller = nil, nil
			shell(strings.Join(documented(t, name), "\n"), "DATA_DIR="+b.Dir)
		}
	}
	// share copies files of the first server to the other.
	share := func(files string) {
		t.Helper()
		shell("cp -r "+files, "FIRST="+b.Dir, "OTHER="+other.Dir)
	}
	// alice checks that all servers know alice by a kubeconfig, which trusts them.
	alice := func(kubeconfig string) {
		t.Helper()
		for _, b := range servers {
			config := loadKubeconfig(t, kubeconfig)
			config.Host = b.Config(t, "admin").Host
			wantStatus(t, harness.NewHTTP(t, config).Do(t, "GET", allPods, nil), 403, `User "alice" cannot list`)
		}
	}

	start(b)
	share("$FIRST/pki $OTHER/")
	start(other)
	first, firstAdmin := issue(t, b, "--user=alice"), b.Config(t, "admin")
	alice(first)

	stop("rotate-ca")
	flags := documented(t, "rotate-ca-flags")
	start(b, flags...)
	share("$FIRST/pki $OTHER/")
	share("$FIRST/pki.old/apiserver.* $OTHER/pki.old/")
	start(other, flags...)
	// Both CAs are in force, and clients of both accept the certificates of the servers.
	second := issue(t, b, "--user=alice")
	alice(first)
	alice(second)
	wantAnswer(t, harness.NewHTTP(t, firstAdmin).Do(t, "GET", allPods, nil), 200)
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}

	stop("rotate-ca-end")
	start(b)
	start(other)
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
