// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

// waitTimeout is how long a test waits for a state. A test reaches it only if it
// fails.
const waitTimeout = 60 * time.Second

// Eventually waits until the condition returns an empty string. If it does not,
// the test fails with the last reason that the condition returned.
func Eventually(t testing.TB, condition func() (reason string)) {
	t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		reason := condition()
		if reason == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("timed out after %s: %s", waitTimeout, reason)
		case <-tick.C:
		}
	}
}

// Gone returns a condition for Eventually: the Namespace does not exist.
func Gone(t testing.TB, namespaces tenancyv1.NamespaceInterface, name string) func() (reason string) {
	return func() string {
		ns, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		}
		return fmt.Sprintf("Namespace %s still exists: finalizers %v, status %+v", name, ns.Spec.Finalizers, ns.Status)
	}
}
