// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
)

// TestDefaultLimits starts a new server. The Namespace default has the LimitRange
// limits from the revision of its creation on, until it is deleted.
func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := b.Client(t).TenancyV1()
	limits, err := client.LimitRanges("default").Get(t.Context(), "limits", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the revision", limits.ResourceVersion, ns.ResourceVersion)
	wantEqual(t, "the managers", []string{limits.ManagedFields[0].Manager}, []string{"borough-apiserver"})
	pod := createPod(t, b, "default", newPod("p"))
	wantEqual(t, "the requests", pod.Spec.Containers[0].Resources.Requests, quantities("cpu=100m"))

	b.Kubectl(t, "delete", "limits", "limits", "-n", "default")
	if err := b.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Client(t).TenancyV1().LimitRanges("default").Get(t.Context(), "limits", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get a LimitRange that was deleted before a restart: %v", err)
	}
}

// TestNoDefaultLimits starts a new server with --default-limits=false.
func TestNoDefaultLimits(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--default-limits=false"); err != nil {
		t.Fatal(err)
	}
	list, err := b.Client(t).TenancyV1().LimitRanges("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	createPod(t, b, "default", newPod("p"))
	if _, err := b.Client(t).TenancyV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
