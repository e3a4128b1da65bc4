// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/e2e/harness"
)

// finalize takes the finalizers away, whoever's they are, and returns what is
// left of the Namespace.
func finalize(t *testing.T, b *harness.Borough, name string) *v1.Namespace {
	t.Helper()
	namespaces := b.Client(t).TenancyV1().Namespaces()
	ns, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.Spec.Finalizers = nil
	ns, err = namespaces.Finalize(t.Context(), name, ns, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("finalize: %v", err)
	}
	return ns
}

// TestFinalizeDoesNotOrphan takes the finalizers of a terminating Namespace
// away behind the controller's back.
func TestFinalizeDoesNotOrphan(t *testing.T) {
	client := alone.Client(t).TenancyV1()
	name := newNamespace(t, alone)
	createPod(t, alone, name, newPod("p"))
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	ns := finalize(t, alone, name)
	if len(ns.Spec.Finalizers) != 0 || ns.Status.Phase != v1.NamespaceTerminating {
		t.Errorf("finalize answered with %v, %s", ns.Spec.Finalizers, ns.Status.Phase)
	}
	if _, err := client.Pods(name).Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod: %v", err)
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
		t.Errorf("after all: %v", err)
	}
}

// TestFinalizedNamespaceGoesWithItsContent does so beside the controller, which
// needs no other call.
func TestFinalizedNamespaceGoesWithItsContent(t *testing.T) {
	client := borough.Client(t).TenancyV1()
	name := newNamespace(t, borough)
	pod := createPod(t, borough, name, newPod("p", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ns := finalize(t, borough, name); ns.Status.Phase != v1.NamespaceTerminating {
		t.Errorf("finalize answered with %s", ns.Status.Phase)
	}
	if _, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Fatalf("the namespace went before its content: %v", err)
	}

	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Pods(name).Patch(t.Context(), pod.Name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, gone(t, borough, name))
}

// TestDeleteAfterFinalize empties the finalizers of an Active Namespace first.
func TestDeleteAfterFinalize(t *testing.T) {
	client := borough.Client(t).TenancyV1()
	name := newNamespace(t, borough)
	createPod(t, borough, name, newPod("p"))
	finalize(t, borough, name)
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, gone(t, borough, name))
}
