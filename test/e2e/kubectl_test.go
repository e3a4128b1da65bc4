// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// rows returns the lines of kubectl's output, with fields separated by one space.
func rows(output string) []string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

// apply runs kubectl apply with a manifest on its standard input.
func apply(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	stdout, stderr, err := borough.TryKubectl(t, manifest, append([]string{"apply", "-f", "-"}, args...)...)
	if err != nil {
		t.Fatalf("kubectl apply: %v\n%s%s", err, stdout, stderr)
	}
	return stdout
}

const podManifest = `
apiVersion: tenancy.borough.io/v1
kind: Pod
metadata:
  name: web
  labels:
    app: web
spec:
  containers:
  - name: nginx
    image: nginx:1.29
`

func TestKubectlSession(t *testing.T) {
	t.Parallel()
	kubectl := func(args ...string) string { t.Helper(); return borough.Kubectl(t, args...) }
	ns := newNamespace(t, borough)

	wantContains(t, kubectl("get", "ns", ns), "NAME", "STATUS", "AGE", ns, "Active")
	wantContains(t, kubectl("get", "namespaces", "-o", "name"), "namespace/"+ns)

	wantEqual(t, "first apply", apply(t, podManifest, "-n", ns), "pod.tenancy.borough.io/web created\n")
	wantEqual(t, "second apply", apply(t, podManifest, "-n", ns), "pod.tenancy.borough.io/web unchanged\n")
	changed := strings.Replace(podManifest, "1.29", "1.30", 1)
	wantEqual(t, "apply of a change, in the core group", apply(t, strings.Replace(changed, "tenancy.borough.io/v1", "v1", 1), "-n", ns), "pod/web configured\n")

	wantEqual(t, "get po", rows(kubectl("get", "po", "-n", ns, "--no-headers"))[0][:len("web 0/1 Pending 0 ")], "web 0/1 Pending 0 ")
	wantContains(t, kubectl("get", "po", "-n", ns, "-o", "wide"), "IP", "NODE", "<none>")
	wantContains(t, kubectl("get", "pods", "-A"), "NAMESPACE", ns)
	wantContains(t, kubectl("get", "all", "-n", ns), "web")
	wantContains(t, kubectl("get", "po", "web", "-n", ns, "-o", "yaml"), "apiVersion: v1\n", "image: nginx:1.30", "qosClass: BestEffort")
	wantEqual(t, "jsonpath", kubectl("get", "po", "web", "-n", ns, "-o", "jsonpath={.status.phase}"), "Pending")
	wantEqual(t, "by label", rows(kubectl("get", "po", "-n", ns, "-l", "app=web", "-o", "name")), []string{"pod/web"})
	wantEqual(t, "by field", kubectl("get", "po", "-n", ns, "--field-selector", "spec.nodeName=n", "-o", "name"), "")
	wantContains(t, kubectl("describe", "po", "web", "-n", ns), "Name:", "web", "QoS Class:", "BestEffort")
	wantContains(t, kubectl("describe", "ns", ns), ns, "Active")

	wantContains(t, kubectl("label", "po", "web", "-n", ns, "tier=front"), "labeled")
	wantContains(t, kubectl("annotate", "po", "web", "-n", ns, "note=this"), "annotated")
	wantContains(t, kubectl("patch", "po", "web", "-n", ns, "--type=merge", "-p", `{"metadata":{"labels":{"tier":"back"}}}`), "patched")
	wantContains(t, kubectl("patch", "po", "web", "-n", ns, "--type=json", "-p", `[{"op":"remove","path":"/metadata/labels/tier"}]`), "patched")
	wantContains(t, kubectl("patch", "po", "web", "-n", ns, "--type=strategic", "-p", `{"spec":{"containers":[{"name":"nginx","image":"nginx:1.31"}]}}`), "patched")
	wantEqual(t, "after the patches", kubectl("get", "po", "web", "-n", ns, "-o", "jsonpath={.metadata.labels} {.spec.containers[*].image}"), `{"app":"web"} nginx:1.31`)
	wantContains(t, kubectl("patch", "po", "web", "-n", ns, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running"}}`), "patched")
	wantContains(t, kubectl("wait", "po", "web", "-n", ns, "--for=jsonpath={.status.phase}=Running", "--timeout=30s"), "condition met")

	wantContains(t, kubectl("delete", "po", "web", "-n", ns), "deleted")
	wantContains(t, kubectl("delete", "ns", ns), "deleted") // waits until it is gone
	wantContains(t, borough.KubectlFails(t, "get", "ns", ns), "NotFound", `namespaces "`+ns+`" not found`)
}

func TestKubectlDiscovery(t *testing.T) {
	t.Parallel()
	resources := rows(borough.Kubectl(t, "api-resources", "--api-group=tenancy.borough.io", "--no-headers"))
	wantEqual(t, "api-resources", resources, []string{
		"limitranges tenancy.borough.io/v1 true LimitRange",
		"namespacepurges tenancy.borough.io/v1 true NamespacePurge",
		"namespacerequests tenancy.borough.io/v1 false NamespaceRequest",
		"namespaces tenancy.borough.io/v1 false Namespace",
		"namespacetemplates nst tenancy.borough.io/v1 false NamespaceTemplate",
		"pods tenancy.borough.io/v1 true Pod",
		"projects tenancy.borough.io/v1 false Project",
		"resourcequotas tenancy.borough.io/v1 true ResourceQuota",
	})
	wantContains(t, borough.Kubectl(t, "api-versions"), "tenancy.borough.io/v1")
	wantContains(t, borough.Kubectl(t, "explain", "ns"), "KIND:", "Namespace", "VERSION:", "v1", "spec", "status")
	wantContains(t, borough.Kubectl(t, "explain", "limits.spec.limits.maxLimitRequestRatio"), "LimitRange", "maxLimitRequestRatio")
	wantContains(t, borough.Kubectl(t, "explain", "po.spec.containers", "--recursive"), "image", "resources")
	wantContains(t, borough.Kubectl(t, "version"), "Server Version")
}

func TestKubectlLimits(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	apply(t, `
apiVersion: tenancy.borough.io/v1
kind: LimitRange
metadata:
  name: l
spec:
  limits:
  - type: Container
    max:
      cpu: "1"
`, "-n", ns)
	wantContains(t, borough.Kubectl(t, "get", "limits", "-n", ns), "NAME", "CREATED AT", "l")
	wantContains(t, borough.Kubectl(t, "describe", "limits", "l", "-n", ns), "Container")
	wantContains(t, borough.Kubectl(t, "delete", "limits", "--all", "-n", ns), "deleted")
}

func TestKubectlChunks(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for i := range 7 {
		createPod(t, borough, ns, newPod(fmt.Sprintf("p%d", i)))
	}
	wantEqual(t, "Pods", len(rows(borough.Kubectl(t, "get", "po", "-n", ns, "--chunk-size=2", "--no-headers"))), 7)
}

func TestKubectlServerSide(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	wantContains(t, apply(t, podManifest, "-n", ns, "--server-side"), "web serverside-applied")
	wantContains(t, apply(t, podManifest, "-n", ns, "--server-side", "--dry-run=server"), "serverside-applied (server dry run)")
	_, stderr, err := borough.TryKubectl(t, strings.Replace(podManifest, "1.29", "1.30", 1), "apply", "-n", ns, "--server-side", "--field-manager=other", "-f", "-")
	if err == nil {
		t.Error("server-side apply took a field of another manager without force")
	}
	wantContains(t, stderr, "conflict with \"kubectl\"", ".spec.containers[name=\"nginx\"].image")

	stdout, stderr, err := borough.TryKubectl(t, strings.Replace(podManifest, "1.29", "1.30", 1), "diff", "-n", ns, "-f", "-")
	var exit *exec.ExitError
	if _, lacking := exec.LookPath("diff"); lacking == nil {
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("kubectl diff: got %v, want exit code 1\n%s", err, stderr)
		}
		wantContains(t, stdout, "-  - image: nginx:1.29", "+  - image: nginx:1.30")
	}
}

func TestKubectlBadManifests(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for manifest, want := range map[string]string{
		strings.Replace(podManifest, "spec:", "spec:\n  foo: 1", 1):         `unknown field "spec.foo"`,
		strings.Replace(podManifest, "name: nginx", "name: NGINX", 1):       "spec.containers[0].name",
		strings.Replace(podManifest, "tenancy.borough.io/v1", "a.io/v1", 1): "no matches for kind \"Pod\" in version \"a.io/v1\"",
	} {
		_, stderr, err := borough.TryKubectl(t, manifest, "create", "-n", ns, "-f", "-")
		if err == nil {
			t.Errorf("kubectl create succeeded with\n%s", manifest)
		}
		wantContains(t, stderr, want)
	}
	_, stderr, err := borough.TryKubectl(t, podManifest, "create", "-n", "not-there", "-f", "-")
	if err == nil {
		t.Error("kubectl created a Pod in a Namespace that does not exist")
	}
	wantContains(t, stderr, "(NotFound)", `"not-there" not found`)
}

// TestExamples applies the manifests that the README uses, and runs the example
// of the typed client.
func TestExamples(t *testing.T) {
	t.Parallel()
	example := func(name string) string { return filepath.Join(harness.Root, "examples", name) }
	borough.Kubectl(t, "apply", "-f", example("1-namespace.yaml"))
	borough.Kubectl(t, "apply", "-f", example("2-limitrange.yaml"))
	borough.Kubectl(t, "apply", "-f", example("3-pod.yaml"))
	wantEqual(t, "limits of the Pod",
		borough.Kubectl(t, "get", "po", "web", "-n", "team-a", "-o", "jsonpath={.spec.containers[0].resources}"),
		`{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}}`)
	wantContains(t, borough.KubectlFails(t, "apply", "-f", example("4-pod-too-big.yaml")),
		"(Forbidden)", `pods.tenancy.borough.io "too-big" is forbidden: maximum cpu usage per Container is 1, but limit is 2`)
	borough.Kubectl(t, "apply", "-f", example("5-resourcequota.yaml"))
	wantContains(t, borough.Kubectl(t, "get", "resourcequotas", "-n", "team-a"), "pods: 1/3, requests.cpu: 100m/1", "limits.memory: 256Mi/1Gi")
	borough.Kubectl(t, "create", "rolebinding", "alice", "--clusterrole=edit", "--user=alice", "-n", "team-a")
	alice := kubectlFor(t, issue(t, borough, "--user=alice"))
	wantContains(t, alice.Run(t, "get", "pods", "-n", "team-a"), "web ")
	wantContains(t, alice.Fails(t, "get", "pods", "-n", "default"),
		`Error from server (Forbidden): pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"`)
	borough.Kubectl(t, "delete", "ns", "team-a")

	cmd := exec.CommandContext(t.Context(), "go", "run", "./examples/client")
	cmd.Dir = harness.Root
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+filepath.Join(borough.Dir, "admin.kubeconfig"))
	var stderr strings.Builder
	cmd.Stderr = &stderr // client-go logs the end of a watch
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("run the example: %v\n%s%s", err, output, &stderr)
	}
	wantEqual(t, "output of the example", string(output), "The Pod may use 256Mi of memory.\nThe Namespace is gone, with all that was in it.\n")
}
