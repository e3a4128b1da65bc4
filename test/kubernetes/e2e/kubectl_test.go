// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/borough-io/borough/test/poll"
)

// The manifests are core's with another apiVersion.
const (
	namespaceManifest = `apiVersion: tenancy.borough.io/v1
kind: Namespace
metadata:
  name: %s
  labels: {stage: %s}
`
	limitRangeManifest = `apiVersion: tenancy.borough.io/v1
kind: LimitRange
metadata:
  name: limits
spec:
  limits:
  - type: Container
    max: {cpu: "%s"}
    default: {cpu: 500m}
    defaultRequest: {cpu: 100m}
`
	podManifest = `apiVersion: tenancy.borough.io/v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  containers:
  - name: web
    image: %s
`
)

// TestKubectlNamespace creates, changes and deletes a Namespace.
func TestKubectlNamespace(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	name := newName("kubectl-namespace")
	object := namespaces + "/" + name
	path := "namespace.tenancy.borough.io/" + name

	if out := kubectl.RunWith(t, fmt.Sprintf(namespaceManifest, name, "one"), "create", "-f", "-"); out != path+" created\n" {
		t.Errorf("create: got %q", out)
	}
	fields := strings.Fields(kubectl.Run(t, "get", object, "--no-headers"))
	if len(fields) < 3 || fields[0] != name || fields[1] != "Active" {
		t.Errorf("get: got %q, want name, Active, age and WAITING-FOR", fields)
	}
	wantContains(t, kubectl.Run(t, "get", namespaces), "NAME", "STATUS", "AGE", name)
	if out := kubectl.Run(t, "get", namespaces, "-l", "kubernetes.io/metadata.name="+name, "--field-selector=status.phase=Active", "-o", "name"); out != path+"\n" {
		t.Errorf("get by selectors: got %q", out)
	}
	kubectl.Run(t, "get", namespaces, "--chunk-size=1")

	// kubectl warns that client-side apply adds the missing annotation.
	kubectl.RunWith(t, fmt.Sprintf(namespaceManifest, name, "two"), "apply", "-f", "-")
	wantJSONPath(t, kubectl, object, "{.metadata.labels.stage}", "two")
	if out := kubectl.RunWith(t, fmt.Sprintf(namespaceManifest, name, "three"), "apply", "-f", "-"); out != path+" configured\n" {
		t.Errorf("apply: got %q", out)
	}
	if out := kubectl.RunWith(t, fmt.Sprintf(namespaceManifest, name, "four"), "apply", "-f", "-", "--server-side", "--force-conflicts"); out != path+" serverside-applied\n" {
		t.Errorf("apply --server-side: got %q", out)
	}
	wantJSONPath(t, kubectl, object, "{.metadata.labels.stage}", "four")
	kubectl.Run(t, "label", object, "team=red")
	kubectl.Run(t, "annotate", object, "note=here")
	kubectl.Run(t, "patch", object, "--type=merge", "-p", `{"metadata":{"labels":{"stage":"five"}}}`)
	kubectl.Run(t, "patch", object, "--type=json", "-p", `[{"op":"replace","path":"/metadata/labels/team","value":"blue"}]`)
	wantJSONPath(t, kubectl, object, "{.metadata.labels.stage}/{.metadata.labels.team}/{.metadata.annotations.note}", "five/blue/here")
	wantContains(t, kubectl.Run(t, "describe", object), name, "stage=five", "Active")

	// A dry run changes nothing.
	kubectl.Run(t, "delete", object, "--dry-run=server")
	wantJSONPath(t, kubectl, object, "{.status.phase}", "Active")
	if out := kubectl.Run(t, "delete", object); out != fmt.Sprintf("namespace.tenancy.borough.io %q deleted\n", name) {
		t.Errorf("delete: got %q", out)
	}
	wantContains(t, kubectl.Fails(t, "get", object), "NotFound", fmt.Sprintf("%s %q not found", namespaces, name))
}

// TestKubectlLimitRangeAndPod creates both, checks that the LimitRange applies
// to the Pod, and changes them in every way.
func TestKubectlLimitRangeAndPod(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	run := func(stdin string, args ...string) string {
		t.Helper()
		return kubectl.RunWith(t, stdin, append(args, "-n", namespace)...)
	}

	run(fmt.Sprintf(limitRangeManifest, "2"), "apply", "-f", "-")
	wantContains(t, run("", "get", limitRanges), "NAME", "CREATED AT", "limits")
	run("", "wait", limitRanges+"/limits", "--for=jsonpath={.spec.limits[0].max.cpu}=2")
	wantContains(t, run("", "describe", limitRanges, "limits"), "limits", "500m")

	run(fmt.Sprintf(podManifest, "example.com/web:1"), "create", "-f", "-")
	wantContains(t, run("", "get", pods, "-o", "wide"), "NAME", "READY", "STATUS", "RESTARTS", "AGE", "NODE", "web", "Pending")
	if got := run("", "get", pods+"/web", "-o", "jsonpath={.spec.containers[0].resources}"); got != `{"limits":{"cpu":"500m"},"requests":{"cpu":"100m"}}` {
		t.Errorf("the LimitRange's defaults: got %s", got)
	}
	run(fmt.Sprintf(podManifest, "example.com/web:2"), "apply", "--server-side", "-f", "-", "--force-conflicts")
	run("", "patch", pods, "web", "--type=strategic", "-p", `{"spec":{"containers":[{"name":"web","image":"example.com/web:3"}]}}`)
	if got := run("", "get", pods, "web", "-o", "jsonpath={.spec.containers[0].image}"); got != "example.com/web:3" {
		t.Errorf("after changes of the image: %s", got)
	}
	if out := run("", "get", pods, "-l", "app=web", "--field-selector=status.phase=Pending", "-o", "name"); out != "pod.tenancy.borough.io/web\n" {
		t.Errorf("get by selectors: %q", out)
	}

	run(fmt.Sprintf(limitRangeManifest, "1"), "apply", "-f", "-")
	tooBig := strings.Replace(fmt.Sprintf(podManifest, "example.com/web:1"), "name: web\n    image", "name: web\n    resources: {limits: {cpu: 1500m}}\n    image", 1)
	_, stderr, err := kubectl.Try(t.Context(), strings.Replace(tooBig, "name: web", "name: big", 1), "create", "-n", namespace, "-f", "-")
	if err == nil {
		t.Error("a Pod above the maximum was admitted")
	}
	wantContains(t, stderr, "(Forbidden)", `pods.tenancy.borough.io "big" is forbidden: maximum cpu usage per Container is 1, but limit is 1500m`)

	run("", "delete", pods, "web", "--wait=false")
	run("", "wait", pods+"/web", "--for=delete")
	run("", "delete", limitRanges, "--all")
	wantContains(t, kubectl.Fails(t, "get", limitRanges, "limits", "-n", namespace), "NotFound")
}

// TestKubectlWatch sees every change of a Pod as it happens.
func TestKubectlWatch(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	lines := kubectl.Watch(t, "get", pods, "-n", namespace, "--watch", "--output-watch-events", "-o", `jsonpath={.type} {.object.metadata.name} {.object.metadata.labels.step}{"\n"}`)
	next := func(want string) {
		t.Helper()
		select {
		case line := <-lines:
			if line != want {
				t.Fatalf("the watch shows %q, want %q", line, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the watch does not show %q", want)
		}
	}
	newPod(t, namespace, "web")
	next("ADDED web ")
	kubectl.Run(t, "label", "-n", namespace, pods, "web", "step=two")
	next("MODIFIED web two")
	kubectl.Run(t, "delete", "-n", namespace, pods, "web")
	next("MODIFIED web two") // marked for deletion, as in core
	next("DELETED web two")
}

// TestKubectlEdit edits a Namespace and its content.
func TestKubectlEdit(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t).WithEnv("KUBE_EDITOR=sed -i -e s/one/two/ -e s/web:1/web:2/")
	name := newName("kubectl-edit")
	kubectl.RunWith(t, fmt.Sprintf(namespaceManifest, name, "one")+"---\n"+
		strings.ReplaceAll(fmt.Sprintf(podManifest, "example.com/web:1"), "  name: web", "  name: web\n  namespace: "+name), "create", "-f", "-")
	for _, object := range []string{namespaces + "/" + name, pods + "/web"} {
		if out := kubectl.Run(t, "edit", object, "-n", name); !strings.HasSuffix(out, " edited\n") {
			t.Errorf("edit %s: got %q", object, out)
		}
		if _, stderr, err := kubectl.Try(t.Context(), "", "edit", object, "-n", name); err != nil || !strings.Contains(stderr, "no changes made") {
			t.Errorf("edit %s again: %v, %s", object, err, stderr)
		}
	}
	wantJSONPath(t, kubectl, namespaces+"/"+name, "{.metadata.labels.stage}", "two")
	if image := kubectl.Run(t, "get", pods, "web", "-n", name, "-o", "jsonpath={.spec.containers[0].image}"); image != "example.com/web:2" {
		t.Errorf("the image after the edit: %s", image)
	}
}

// TestKubectlChunks lists in chunks and replaces what it listed.
func TestKubectlChunks(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	for i := range 5 {
		newPod(t, namespace, fmt.Sprintf("pod-%d", i))
	}
	out := kubectl.Run(t, "get", pods, "-n", namespace, "--chunk-size=2", "-o", "name")
	var want strings.Builder
	for i := range 5 {
		fmt.Fprintf(&want, "pod.tenancy.borough.io/pod-%d\n", i)
	}
	if diff := cmp.Diff(want.String(), out); diff != "" {
		t.Errorf("a list in chunks differs (-want +got):\n%s", diff)
	}
	poll.Eventually(t, func() string {
		first, next := 0, 0
		_ = findAudit(t, func(event auditEvent) bool {
			if event.Verb == "list" && event.ObjectRef.Namespace == namespace && strings.Contains(event.RequestURI, "limit=2") {
				if strings.Contains(event.RequestURI, "continue=") {
					next++
				} else {
					first++
				}
			}
			return false
		})
		if first != 1 || next != 2 {
			return fmt.Sprintf("the audit log has %d first chunks and %d others, want 1 and 2", first, next)
		}
		return ""
	})
	listed := kubectl.Run(t, "get", pods, "-n", namespace, "-o", "json")
	if out := kubectl.RunWith(t, listed, "replace", "-f", "-"); strings.Count(out, " replaced\n") != 5 {
		t.Errorf("replace the listed objects: got %q", out)
	}
}

// TestKubectlDryRun checks that dry runs are processed in full and store
// nothing.
func TestKubectlDryRun(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	run := func(stdin string, args ...string) {
		t.Helper()
		if out := kubectl.RunWith(t, stdin, append(args, "--dry-run=server", "-n", namespace)...); !strings.Contains(out, "(server dry run)") {
			t.Errorf("%s: got %q", args, out)
		}
	}
	kubectl.RunWith(t, fmt.Sprintf(limitRangeManifest, "1"), "create", "-n", namespace, "-f", "-")
	newPod(t, namespace, "there")
	pod := fmt.Sprintf(podManifest, "example.com/web:1")
	run(pod, "create", "-f", "-")
	run(pod, "apply", "-f", "-")
	run(pod, "apply", "--server-side", "-f", "-")
	run("", "label", pods, "there", "dry=run")
	// kubectl does not print "(server dry run)" for a patch.
	kubectl.Run(t, "patch", pods, "there", "-n", namespace, "--dry-run=server", "--type=merge", "-p", `{"metadata":{"labels":{"dry":"run"}}}`)
	run("", "delete", pods, "there")
	run("", "delete", namespaces, namespace)
	// The result includes defaulting and admission.
	if cpu := kubectl.RunWith(t, pod, "create", "-n", namespace, "--dry-run=server", "-o", "jsonpath={.spec.containers[0].resources.limits.cpu}", "-f", "-"); cpu != "500m" {
		t.Errorf("a dry run shows the limit %q, want that of the LimitRange", cpu)
	}
	tooBig := strings.Replace(pod, "    image", "    resources: {limits: {cpu: 1500m}}\n    image", 1)
	_, stderr, err := kubectl.Try(t.Context(), tooBig, "create", "-n", namespace, "--dry-run=server", "-f", "-")
	if err == nil || !strings.Contains(stderr, "maximum cpu usage per Container is 1, but limit is 1500m") {
		t.Errorf("a dry run of a Pod above the maximum: %v, %s", err, stderr)
	}
	if out := kubectl.Run(t, "get", pods, "-n", namespace, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.dry};{end}`); out != "there ;" {
		t.Errorf("objects after dry runs: %q", out)
	}
	wantJSONPath(t, kubectl, namespaces+"/"+namespace, "{.status.phase}", "Active")
}

// TestUnknownField checks fieldValidation: an error or a warning.
func TestUnknownField(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	manifest := fmt.Sprintf(namespaceManifest, newName("unknown-field"), "one") + "spec: {colour: red}\n"
	_, stderr, err := kubectl.Try(t.Context(), manifest, "create", "-f", "-")
	if err == nil {
		t.Error("an unknown field was accepted")
	}
	wantContains(t, stderr, `unknown field "spec.colour"`)
	_, stderr, err = kubectl.Try(t.Context(), manifest, "create", "-f", "-", "--validate=warn")
	if err != nil {
		t.Errorf("with --validate=warn: %v\n%s", err, stderr)
	}
	wantContains(t, stderr, `Warning: unknown field "spec.colour"`)
}
