// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// TestDeletionProtection checks that a protected Namespace cannot be deleted, and
// that the command in the error message removes the protection.
func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	client := borough.Client(t).TenancyV1()
	ns := newNamespace(t, borough)
	pod := createPod(t, borough, ns, newPod("stays"))
	borough.Kubectl(t, "patch", ownNamespaces, ns, "--type=merge", "-p", `{"spec":{"deletionProtection":true}}`)
	wantContains(t, borough.Kubectl(t, "get", ownNamespaces, ns, "-o", "wide"), "PROTECTED", "true")
	wantContains(t, borough.Kubectl(t, "describe", ownNamespaces, ns), "Deletion Protection:  true")

	for name, options := range map[string]metav1.DeleteOptions{
		"delete":  {},
		"dry run": {DryRun: []string{metav1.DryRunAll}},
	} {
		err := client.Namespaces().Delete(t.Context(), ns, options)
		if status := wantCode(t, err, 409); status.Reason != metav1.StatusReasonConflict || !apierrors.HasStatusCause(err, v1.NamespaceProtectedCause) {
			t.Errorf("%s: got %+v", name, status)
		}
	}
	wrong := metav1.NewPreconditionDeleteOptions("wrong")
	if err := client.Namespaces().Delete(t.Context(), ns, *wrong); !apierrors.IsConflict(err) || apierrors.HasStatusCause(err, v1.NamespaceProtectedCause) {
		t.Errorf("failing precondition: got %v", err)
	}
	// A finalize request does not change the field.
	finalized := finalize(t, borough, ns)
	if !finalized.Spec.DeletionProtection || len(finalized.Spec.Finalizers) != 0 {
		t.Errorf("finalize changed the spec to %+v", finalized.Spec)
	}
	got, err := client.Pods(ns).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || got.DeletionTimestamp != nil {
		t.Errorf("get the Pod: %+v, error %v", got, err)
	}

	// The command in the message works when copied.
	message := borough.KubectlFails(t, "delete", "ns", ns)
	t.Log(message)
	command := regexp.MustCompile(`kubectl (patch .*)`).FindStringSubmatch(message)
	if command == nil {
		t.Fatalf("no command in %q", message)
	}
	runInShell(t, borough, command[1])
	borough.Kubectl(t, "delete", "ns", ns)
	if reason := gone(t, borough, ns)(); reason != "" {
		t.Error(reason)
	}
}

// runInShell runs kubectl in a shell, with arguments that are quoted for it.
func runInShell(t *testing.T, b *harness.Borough, arguments string) {
	t.Helper()
	kubectl, err := harness.KubectlPath()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", kubectl+" "+arguments)
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+filepath.Join(b.Dir, "admin.kubeconfig"), "HOME="+t.TempDir())
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", arguments, err, output)
	}
}

// TestProtectTerminatingNamespace checks that a Terminating Namespace cannot be
// protected.
func TestProtectTerminatingNamespace(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	ns := newNamespace(t, alone)
	if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := namespaces.Patch(t.Context(), ns, types.MergePatchType, []byte(`{"spec":{"deletionProtection":true}}`), metav1.PatchOptions{})
	wantContains(t, wantCode(t, err, 422).Message, "spec.deletionProtection: Forbidden: may not be set on a namespace that is being deleted")
	// Other fields can be updated.
	if _, err := namespaces.Patch(t.Context(), ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	finalize(t, alone, ns)
}
