// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// TestAdmissionDisabled disables the admission plugins by flags. Limits do not
// apply and the default Namespace can be deleted, but storage still allows no
// content without its Namespace.
func TestAdmissionDisabled(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--disable-admission-plugins=LimitRanger,NamespaceLifecycle"); err != nil {
		t.Fatal(err)
	}
	client := b.Client(t).TenancyV1()

	ns := newNamespace(t, b)
	createLimitRange(t, b, ns, newLimitRange("l", item("Container", "max cpu=1")))
	createPod(t, b, ns, newPod("p", withResources(nil, quantities("cpu=2"))))

	_, err := client.Pods("not-there").Create(t.Context(), newPod("p"), metav1.CreateOptions{})
	wantContains(t, wantCode(t, err, 404).Message, `"not-there" not found`)
	deleteNamespace(t, b, ns)
	_, err = client.Pods(ns).Create(t.Context(), newPod("q"), metav1.CreateOptions{})
	wantEqual(t, "cause", wantCode(t, err, 403).Details.Causes[0].Type, v1.NamespaceTerminatingCause)

	// Without the finalizer, the Namespace still stays as long as its content.
	if _, err := client.Namespaces().Finalize(t.Context(), ns, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("finalize: %v", err)
	}
	if got, err := client.Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); err != nil || got.Status.Phase != v1.NamespaceTerminating {
		t.Fatalf("got %+v (%v), want the Namespace to stay as long as its content", got, err)
	}
	for _, err := range []error{
		client.Pods(ns).Delete(t.Context(), "p", metav1.DeleteOptions{}),
		client.LimitRanges(ns).Delete(t.Context(), "l", metav1.DeleteOptions{}),
		client.Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the content is gone: got %v, want not found", err)
	}
}
