// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
	"github.com/borough-io/borough/test/poll"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestDenial checks that a denial finds the Pod that is being deleted among others, and
// does not copy the others.
func TestDenial(t *testing.T) {
	const more, denials, maxBytes = 300, 20, 400
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreatePod(t, "held", registrytest.OnNode)
	r.CreateQuota(t, "q", corev1.ResourceList{"count/pods": resource.MustParse("1")})
	denial := func() string {
		t.Helper()
		pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Name: "denied", Namespace: r.Namespace}, Spec: r.GetPod(t, "held").Spec}
		_, err := r.Pods.Create(r.Context, pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Fatalf("got %v, want Forbidden", err)
		}
		return err.Error()
	}
	bytes := func() uint64 {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range denials {
			denial()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / denials
	}
	alone := bytes()

	if _, _, err := r.Quotas.Delete(r.Context, "q", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range more {
		r.CreatePod(t, fmt.Sprintf("p%d", i))
	}
	r.CreateQuota(t, "q", corev1.ResourceList{"count/pods": resource.MustParse("1")})
	if among := bytes(); among > alone+more*maxBytes {
		t.Errorf("with %d Pods more, a denial allocates %d bytes instead of %d", more, among, alone)
	}

	if _, _, err := r.Pods.Delete(r.Context, "held", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		if text := denial(); !strings.Contains(text, ", of which pods/held (Terminating for ") {
			return text
		}
		return ""
	})
}
