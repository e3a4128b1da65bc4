// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// finalize removes all finalizers from the spec and returns the resulting
// Namespace.
func finalize(t *testing.T, b *harness.Borough, name string) *v1.Namespace {
	t.Helper()
	namespaces := b.Client(t).TenancyV1().Namespaces()
	var ns *v1.Namespace
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) { // the controller may write the status
		if ns, err = namespaces.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		ns.Spec.Finalizers = nil
		ns, err = namespaces.Finalize(t.Context(), name, ns, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("finalize: %v", err)
	}
	return ns
}

// TestFinalizeLeavesNoOrphans removes the finalizers of a Terminating Namespace
// that has content.
func TestFinalizeLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	client := alone.Client(t).TenancyV1()
	name := newNamespace(t, alone)
	createPod(t, alone, name, newPod("p"))
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	ns := finalize(t, alone, name)
	if len(ns.Spec.Finalizers) != 0 || ns.Status.Phase != v1.NamespaceTerminating {
		t.Errorf("finalize returned %v, %s", ns.Spec.Finalizers, ns.Status.Phase)
	}
	if _, err := client.Pods(name).Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Errorf("get the Pod: %v", err)
	}
	err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{})
	if !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause) {
		t.Errorf("delete with content: %v", err)
	}
	if _, err := client.Pods(name).Create(t.Context(), newPod("q"), metav1.CreateOptions{}); !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		t.Errorf("create: %v", err)
	}

	if err := client.Pods(name).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete without content: %v", err)
	}
	if _, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

// TestFinalizedNamespaceIsRemovedWithContent does the same on a server with a
// controller. The Namespace is removed without another request.
func TestFinalizedNamespaceIsRemovedWithContent(t *testing.T) {
	t.Parallel()
	client := borough.Client(t).TenancyV1()
	name := newNamespace(t, borough)
	pod := createPod(t, borough, name, newPod("p", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ns := finalize(t, borough, name); ns.Status.Phase != v1.NamespaceTerminating {
		t.Errorf("finalize returned phase %s", ns.Status.Phase)
	}
	if _, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Fatalf("the Namespace was removed before its content: %v", err)
	}

	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Pods(name).Patch(t.Context(), pod.Name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, gone(t, borough, name))
}

// TestDeleteAfterFinalize deletes an Active Namespace whose finalizers were
// removed.
func TestDeleteAfterFinalize(t *testing.T) {
	t.Parallel()
	client := borough.Client(t).TenancyV1()
	name := newNamespace(t, borough)
	createPod(t, borough, name, newPod("p"))
	finalize(t, borough, name)
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, gone(t, borough, name))
}
