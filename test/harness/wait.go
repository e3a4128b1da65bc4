// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

// Gone returns a condition for poll.Eventually: the Namespace does not exist.
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
