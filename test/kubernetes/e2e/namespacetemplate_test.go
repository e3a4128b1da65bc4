// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

// TestNamespaceTemplate creates Namespaces with content through the cluster. A policy of
// the cluster sees the new Namespace of the content.
func TestNamespaceTemplate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	team := newName("team")
	client := cluster.BoroughClient(t).TenancyV1()
	create := func(name, stage string, dryRun ...string) error {
		_, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"team": team, "stage": stage},
		}}, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	limits := corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	frozen := newName("frozen")
	if err := create(frozen, "frozen"); err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t).RunWith(t, strings.ReplaceAll(frozenPolicy("TEAM-template", "limitranges"), "TEAM", team), "apply", "-f", "-")
	poll.Eventually(t, func() string { // until the server's informers have the policy
		_, err := client.LimitRanges(frozen).Create(ctx, &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{GenerateName: "l-"}, Spec: limits}, metav1.CreateOptions{})
		if err == nil {
			return "a LimitRange was created in spite of the policy"
		}
		return ""
	})

	template := &v1.NamespaceTemplate{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: v1.NamespaceTemplateSpec{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
		LimitRange:        &v1.LimitRangeTemplate{Metadata: v1.TemplateMetadata{Name: "l"}, Spec: limits},
		RoleBinding:       &v1.RoleBindingTemplate{Metadata: v1.TemplateMetadata{Name: "r"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}},
	}}
	_, err := client.NamespaceTemplates().Create(ctx, template, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.roleBinding: Forbidden: needs a standalone server") {
		t.Errorf("with a RoleBinding: %v", err)
	}
	template.Spec.RoleBinding = nil
	if _, err := client.NamespaceTemplates().Create(ctx, template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
		name := newName("template")
		err := create(name, "frozen", dryRun...)
		want := fmt.Sprintf(`namespaces.tenancy.borough.io %q is forbidden: namespace template %q cannot be applied: `, name, team)
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), name+" is frozen") {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := create(name, "open", dryRun...); err != nil {
			t.Fatal(err)
		}
		_, err = client.LimitRanges(name).Get(ctx, "l", metav1.GetOptions{})
		if created := err == nil; created != (dryRun == nil) || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("dry run %v: get the LimitRange: %v", dryRun, err)
		}
	}
}
