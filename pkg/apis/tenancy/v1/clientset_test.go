// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
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

// TestFakeCreate checks which fake clientset can create the kinds that do not support
// server-side apply.
func TestFakeCreate(t *testing.T) {
	for kind, create := range map[string]func(*fake.Clientset) error{
		"NamespacePurge": func(client *fake.Clientset) error {
			_, err := client.TenancyV1().NamespacePurges("ns").Create(t.Context(), &v1.NamespacePurge{}, metav1.CreateOptions{})
			return err
		},
		"NamespaceRequest": func(client *fake.Clientset) error {
			_, err := client.TenancyV1().NamespaceRequests().Create(t.Context(), &v1.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, metav1.CreateOptions{})
			return err
		},
		"Project": func(client *fake.Clientset) error {
			return client.Tracker().Create(v1.SchemeGroupVersion.WithResource("projects"), &v1.Project{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, "")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			if err := create(fake.NewSimpleClientset()); err != nil {
				t.Errorf("NewSimpleClientset: %v", err)
			}
			if err := create(fake.NewClientset()); err == nil || !strings.Contains(err.Error(), "no type found matching") {
				t.Errorf("NewClientset: got %v, want an error about the type", err)
			}
		})
	}
	projects := fake.NewClientset(&v1.Project{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}).TenancyV1().Projects()
	if _, err := projects.Get(t.Context(), "ns", metav1.GetOptions{}); err != nil {
		t.Errorf("NewClientset with a Project: %v", err)
	}
}
