// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// tenant is the name of a user, who exists only by impersonation.
const tenant = "borough-test-tenant"

// session uses Borough as the administrator and as a tenant.
func (s *site) session(t *testing.T) {
	ctx := t.Context()
	admin := s.tenancy(t, "").TenancyV1()
	ns, err := admin.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "borough-test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limits := &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}}}
	if _, err := admin.LimitRanges(ns.Name).Create(ctx, limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := admin.Pods(ns.Name).Create(ctx, harness.NewPod("admin"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cpu := pod.Spec.Containers[0].Resources.Limits.Cpu().String(); cpu != "100m" {
		t.Errorf("the LimitRange sets a limit of 100m CPU, the Pod got %s", cpu)
	}

	s.bindTenant(t, ns.Name)
	s.tenantSession(t, ns.Name)

	if err := admin.Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "Namespace "+ns.Name, func(ctx context.Context) error {
		_, err := admin.Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		return err
	})
	if pods, err := admin.Pods(ns.Name).List(ctx, metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("Pods of the deleted Namespace: %v, %v", pods, err)
	}
	if limits, err := admin.LimitRanges(ns.Name).List(ctx, metav1.ListOptions{}); err != nil || len(limits.Items) > 0 {
		t.Errorf("LimitRanges of the deleted Namespace: %v, %v", limits, err)
	}
	// The deletion of a namespace of the cluster does not depend on ours.
	if err := s.client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the cluster's namespace "+ns.Name, func(ctx context.Context) error {
		_, err := s.client.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		return err
	})
}

// bindTenant binds the tenant to edit in a namespace of the cluster.
func (s *site) bindTenant(t *testing.T, namespace string) {
	t.Helper()
	if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
	}
	if _, err := s.client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// tenantSession checks that the tenant can write Pods in the Namespace, and nothing
// else.
func (s *site) tenantSession(t *testing.T, namespace string) {
	t.Helper()
	client := s.tenancy(t, tenant).TenancyV1()
	// The roles are aggregated, and caches of authorization see the binding, later.
	err := poll.Until(t.Context(), timeout, func(ctx context.Context) error {
		_, err := client.Pods(namespace).Create(ctx, harness.NewPod("tenant"), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("create a Pod as the tenant: %v", err)
	}
	none := metav1.ListOptions{}
	for _, request := range []struct {
		what    string
		allowed bool
		make    func(context.Context) error
	}{
		{"get a Pod", true, func(ctx context.Context) error {
			_, err := client.Pods(namespace).Get(ctx, "admin", metav1.GetOptions{})
			return err
		}},
		{"list Pods", true, func(ctx context.Context) error { _, err := client.Pods(namespace).List(ctx, none); return err }},
		{"list LimitRanges", true, func(ctx context.Context) error { _, err := client.LimitRanges(namespace).List(ctx, none); return err }},
		{"patch a Pod", true, func(ctx context.Context) error {
			_, err := client.Pods(namespace).Patch(ctx, "tenant", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			return err
		}},
		{"delete a Pod", true, func(ctx context.Context) error {
			return client.Pods(namespace).Delete(ctx, "tenant", metav1.DeleteOptions{})
		}},
		{"create a LimitRange", false, func(ctx context.Context) error {
			_, err := client.LimitRanges(namespace).Create(ctx, &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}, metav1.CreateOptions{})
			return err
		}},
		{"delete a LimitRange", false, func(ctx context.Context) error {
			return client.LimitRanges(namespace).Delete(ctx, "limits", metav1.DeleteOptions{})
		}},
		{"delete the Namespace", false, func(ctx context.Context) error {
			return client.Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		}},
		{"create a Namespace", false, func(ctx context.Context) error {
			_, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-2"}}, metav1.CreateOptions{})
			return err
		}},
		{"list Namespaces", false, func(ctx context.Context) error { _, err := client.Namespaces().List(ctx, none); return err }},
		{"list all Pods", false, func(ctx context.Context) error { _, err := client.Pods("").List(ctx, none); return err }},
		{"create a Pod in another Namespace", false, func(ctx context.Context) error {
			_, err := client.Pods("default").Create(ctx, harness.NewPod("tenant"), metav1.CreateOptions{})
			return err
		}},
	} {
		if err := request.make(t.Context()); request.allowed && err != nil || !request.allowed && !apierrors.IsForbidden(err) {
			t.Errorf("the tenant's request to %s: got %v", request.what, err)
		}
	}
}
