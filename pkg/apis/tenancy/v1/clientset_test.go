// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

// TestFakeBind binds Pods with the fake clientset, as tests of a scheduler do.
func TestFakeBind(t *testing.T) {
	pods := fake.NewClientset(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}).TenancyV1().Pods("ns")
	if _, err := pods.Bind(t.Context(), "web", &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := pods.Bind(t.Context(), "absent", &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "absent"}}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
}
