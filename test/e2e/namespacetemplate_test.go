// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// templateLabel is the label of the Namespaces that a template of a test is for.
const templateLabel = "template"

// newTemplate returns a template with all three objects for Namespaces whose label is
// the template's name. They are named after the template.
func newTemplate(name string, modify ...func(*v1.NamespaceTemplateSpec)) *v1.NamespaceTemplate {
	meta := v1.TemplateMetadata{Name: name, Labels: map[string]string{"from": "template"}, Annotations: map[string]string{"note": "x"}}
	template := &v1.NamespaceTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NamespaceTemplateSpec{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{templateLabel: name}},
		LimitRange:        &v1.LimitRangeTemplate{Metadata: meta, Spec: newLimitRange("", item("Container", "default cpu=1")).Spec},
		ResourceQuota:     &v1.ResourceQuotaTemplate{Metadata: meta, Spec: newQuota("", "pods=1 count/limitranges=5").Spec},
		RoleBinding: &v1.RoleBindingTemplate{
			Metadata: meta,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "auditors"}},
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
		},
	}}
	for _, m := range modify {
		m(&template.Spec)
	}
	return template
}

// asDefault makes a template the default.
func asDefault(spec *v1.NamespaceTemplateSpec) { spec.NamespaceSelector = nil }

// createTemplate creates a template for the time of the test.
func createTemplate(t *testing.T, b *harness.Borough, template *v1.NamespaceTemplate) {
	t.Helper()
	templates := b.Client(t).TenancyV1().NamespaceTemplates()
	if _, err := templates.Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := templates.Delete(context.Background(), template.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// labelled returns a Namespace for which the template is.
func labelled(name, template string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{templateLabel: template}}}
}

// wantContent fails the test unless the Namespace has the content of newTemplate, from
// its creation on.
func wantContent(t *testing.T, b *harness.Borough, name, template string) {
	t.Helper()
	ns, err := b.Client(t).TenancyV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := b.Client(t).TenancyV1().LimitRanges(name).Get(t.Context(), template, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota, err := b.Client(t).TenancyV1().ResourceQuotas(name).Get(t.Context(), template, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := rights(t, b).RoleBindings(name).Get(t.Context(), template, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the revision of the LimitRange", limits.ResourceVersion, ns.ResourceVersion)
	wantEqual(t, "the revision of the RoleBinding", binding.ResourceVersion, ns.ResourceVersion)
	wantUsed(t, b, name, template, "pods=0 count/limitranges=1")
	wantEqual(t, "the default", limits.Spec.Limits[0].Default, quantities("cpu=1"))
	wantEqual(t, "the subjects", binding.Subjects, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "auditors"}})
	delete(quota.Annotations, v1.UsageRulesAnnotation)
	for _, object := range []metav1.Object{limits, quota, binding} {
		wantEqual(t, "the labels", object.GetLabels(), map[string]string{"from": "template"})
		wantEqual(t, "the annotations", object.GetAnnotations(), map[string]string{"note": "x"})
		fields := object.GetManagedFields()
		if len(fields) != 1 || fields[0].Manager != "borough-apiserver" || fields[0].Operation != metav1.ManagedFieldsOperationUpdate {
			t.Errorf("the fields of a %T are managed by %+v", object, fields)
		}
	}
	// In force from the first write.
	pod := createPod(t, b, name, newPod("first"))
	wantEqual(t, "the limits", pod.Spec.Containers[0].Resources.Limits, quantities("cpu=1"))
	wantDenied(t, tryPod(t, b, name, newPod("second")), "second", "exceeded quota: "+template+", requested: pods=1, used: pods=1, limited: pods=1")
}

// TestNamespaceTemplate creates Namespaces in every way.
func TestNamespaceTemplate(t *testing.T) {
	t.Parallel()
	prefix := newNamespace(t, borough)
	template := prefix + "-t"
	createTemplate(t, borough, newTemplate(template))
	namespaces := borough.Client(t).TenancyV1().Namespaces()
	requests := requestsOf(t, borough, newRequester(t, borough))
	applied := func(name string) []byte { return toJSON(t, withKind(labelled(name, template))) }
	for way, create := range map[string]func(name string, dryRun []string) (string, error){
		"post": func(name string, dryRun []string) (string, error) {
			ns, err := namespaces.Create(t.Context(), labelled(name, template), metav1.CreateOptions{DryRun: dryRun})
			return ns.Name, err
		},
		"generated": func(name string, dryRun []string) (string, error) {
			ns := labelled("", template)
			ns.GenerateName = name + "-"
			ns, err := namespaces.Create(t.Context(), ns, metav1.CreateOptions{DryRun: dryRun})
			return ns.Name, err
		},
		"apply": func(name string, dryRun []string) (string, error) {
			ns, err := namespaces.Patch(t.Context(), name, types.ApplyPatchType, applied(name), metav1.PatchOptions{DryRun: dryRun, FieldManager: "test"})
			return ns.Name, err
		},
		"request": func(name string, dryRun []string) (string, error) {
			wanted := newRequest(name)
			wanted.Labels = map[string]string{templateLabel: template}
			created, err := requests.Create(t.Context(), wanted, metav1.CreateOptions{DryRun: dryRun})
			return created.Name, err
		},
	} {
		t.Run(way, func(t *testing.T) {
			name := prefix + "-" + way
			dry, err := create(name, []string{metav1.DryRunAll})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := namespaces.Get(t.Context(), dry, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("after a dry run: %v", err)
			}
			created, err := create(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantContent(t, borough, created, template)
			if way == "request" {
				if _, err := rights(t, borough).RoleBindings(created).Get(t.Context(), "admin", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
			if _, err := create(name, nil); way == "post" && !apierrors.IsAlreadyExists(err) {
				t.Errorf("the second one: %v", err)
			}
		})
	}
}

func withKind(ns *v1.Namespace) *v1.Namespace {
	ns.TypeMeta = metav1.TypeMeta{APIVersion: v1.SchemeGroupVersion.String(), Kind: "Namespace"}
	return ns
}

// TestNamespaceTemplateChanges changes a template, which changes nothing in Namespaces
// that exist, and creates a Namespace again.
func TestNamespaceTemplateChanges(t *testing.T) {
	t.Parallel()
	name := newNamespace(t, borough) + "-ns"
	template := name + "-t"
	createTemplate(t, borough, newTemplate(template))
	client := borough.Client(t).TenancyV1()
	create := func() {
		t.Helper()
		if _, err := client.Namespaces().Create(t.Context(), labelled(name, template), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	deleteNamespace := func() {
		t.Helper()
		if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		poll.Eventually(t, gone(t, borough, name))
	}
	create()
	wantContent(t, borough, name, template)

	changed := newTemplate(template, func(spec *v1.NamespaceTemplateSpec) {
		spec.ResourceQuota, spec.RoleBinding = nil, nil
		spec.LimitRange.Metadata.Name = "changed"
	})
	if _, err := client.NamespaceTemplates().Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.LimitRanges(name).Get(t.Context(), template, metav1.GetOptions{}); err != nil {
		t.Errorf("after a change of the template: %v", err)
	}
	deleteNamespace()
	create()
	content := func(name string) string {
		t.Helper()
		return borough.Kubectl(t, "get", "limits,quota,rolebindings.rbac.authorization.k8s.io", "-n", name, "-o", "name")
	}
	wantEqual(t, "the content", content(name), "limitrange/changed\n")
	deleteNamespace()
	if err := client.NamespaceTemplates().Delete(t.Context(), template, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	create()
	wantEqual(t, "the content", content(name), "")
}

// TestInvalidNamespaceTemplate writes templates whose content is not valid.
func TestInvalidNamespaceTemplate(t *testing.T) {
	t.Parallel()
	name := newNamespace(t, borough)
	for _, test := range []struct {
		change func(*v1.NamespaceTemplateSpec)
		want   string
	}{
		{func(s *v1.NamespaceTemplateSpec) { s.NamespaceSelector.MatchLabels["a b"] = "" }, "spec.namespaceSelector.matchLabels: Invalid value"},
		{func(s *v1.NamespaceTemplateSpec) {
			s.NamespaceSelector.MatchExpressions = make([]metav1.LabelSelectorRequirement, 51)
		}, "spec.namespaceSelector.matchExpressions: Too many: 51: must have at most 50 items"},
		{func(s *v1.NamespaceTemplateSpec) { s.LimitRange.Metadata.Name = "" }, "spec.limitRange.metadata.name: Required value"},
		{func(s *v1.NamespaceTemplateSpec) { s.LimitRange.Spec.Limits[0].Max = quantities("cpu=100m") }, "spec.limitRange.spec.limits[0].default[cpu]: Invalid value"},
		{func(s *v1.NamespaceTemplateSpec) { s.ResourceQuota.Spec.Hard = quantities("pods=-1") }, "spec.resourceQuota.spec.hard[pods]: Invalid value"},
		{func(s *v1.NamespaceTemplateSpec) { s.ResourceQuota.Metadata.Labels["a b"] = "" }, "spec.resourceQuota.metadata.labels: Invalid value"},
		{func(s *v1.NamespaceTemplateSpec) { s.RoleBinding.Metadata.Name = "admin" }, "spec.roleBinding.metadata.name: Invalid value"},
		{func(s *v1.NamespaceTemplateSpec) { s.RoleBinding.RoleRef.Kind = "Group" }, `spec.roleBinding.roleRef.kind: Unsupported value: "Group"`},
		{func(s *v1.NamespaceTemplateSpec) { s.RoleBinding.Subjects[0].Name = "" }, "spec.roleBinding.subjects[0].name: Required value"},
	} {
		_, err := borough.Client(t).TenancyV1().NamespaceTemplates().Create(t.Context(), newTemplate(name, test.change), metav1.CreateOptions{})
		wantContains(t, wantCode(t, err, 422).Message, test.want)
	}
}

// TestNamespaceTemplateOfLargeQuota checks that the quota of a template is not larger than those
// of a Namespace may be.
func TestNamespaceTemplateOfLargeQuota(t *testing.T) {
	t.Parallel()
	const selectors, values = 6, 200
	name := newNamespace(t, borough) + "-large"
	createTemplate(t, borough, newTemplate(name, func(spec *v1.NamespaceTemplateSpec) {
		spec.RoleBinding = nil
		selector := &corev1.ScopeSelector{}
		for range selectors {
			classes := slices.Repeat([]string{strings.Repeat("x", 1<<20/selectors/values)}, values)
			selector.MatchExpressions = append(selector.MatchExpressions, corev1.ScopedResourceSelectorRequirement{
				ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpNotIn, Values: classes,
			})
		}
		spec.ResourceQuota.Spec = newQuota("", "pods=1", func(quota *corev1.ResourceQuotaSpec) { quota.ScopeSelector = selector }).Spec
	}))
	_, err := borough.Client(t).TenancyV1().Namespaces().Create(t.Context(), labelled(name, name), metav1.CreateOptions{})
	wantContains(t, wantCode(t, err, 403).Message, `namespace template "`+name+`" cannot be applied: resourcequotas.tenancy.borough.io "`+name+`" is forbidden: the resource quotas of the namespace would have `)
}

// TestNamespaceTemplateRights writes templates as users who may, but do not hold the
// rights of the roles.
func TestNamespaceTemplateRights(t *testing.T) {
	t.Parallel()
	user := newNamespace(t, borough)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1.GroupName}, Resources: []string{"namespacetemplates"}, Verbs: []string{"create", "update", "delete"}},
	}}
	roles := rights(t, borough).ClusterRoles()
	if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roles.Delete(context.Background(), user, metav1.DeleteOptions{}) })
	grant(t, borough, "", user, user)
	t.Cleanup(func() {
		_ = rights(t, borough).ClusterRoleBindings().Delete(context.Background(), user, metav1.DeleteOptions{})
	})
	templates := clientAs(t, borough, user).TenancyV1().NamespaceTemplates()
	create := func(kind, role string) error {
		_, err := templates.Create(t.Context(), newTemplate(user, func(s *v1.NamespaceTemplateSpec) {
			s.RoleBinding.RoleRef = rbacv1.RoleRef{Kind: kind, Name: role}
		}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	wantContains(t, wantCode(t, create("ClusterRole", "view"), 403).Message, fmt.Sprintf("namespacetemplates.tenancy.borough.io %q is forbidden: user %[1]q", user), "is attempting to grant RBAC permissions not currently held")
	wantContains(t, wantCode(t, create("Role", "any"), 403).Message, "needs the verb bind on roles in all namespaces")
	if err := create("ClusterRole", user); err != nil {
		t.Errorf("a role whose rights the user holds: %v", err)
	}
	withoutRoleBinding := newTemplate(user, func(s *v1.NamespaceTemplateSpec) { s.RoleBinding = nil })
	if _, err := templates.Create(t.Context(), withoutRoleBinding, metav1.CreateOptions{}); err != nil {
		t.Fatalf("without a RoleBinding: %v", err)
	}
	t.Cleanup(func() { _ = templates.Delete(context.Background(), user, metav1.DeleteOptions{}) })
	_, err := templates.Update(t.Context(), newTemplate(user), metav1.UpdateOptions{})
	wantCode(t, err, 403)

	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "roles"}, Verbs: []string{"bind"}})
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ClusterRole", "Role"} {
		if err := create(kind, "not-there"); err != nil && !strings.Contains(err.Error(), "already exists") {
			t.Errorf("with the verb bind on a %s: %v", kind, err)
		}
	}
	// Tenants may not even read templates.
	tenant := newNamespace(t, borough)
	grant(t, borough, tenant, "admin", tenant)
	_, err = clientAs(t, borough, tenant).TenancyV1().NamespaceTemplates().List(t.Context(), metav1.ListOptions{})
	wantCode(t, err, 403)
}

// TestKubectlNamespaceTemplates prints templates.
func TestKubectlNamespaceTemplates(t *testing.T) {
	t.Parallel()
	name := newNamespace(t, borough)
	createTemplate(t, borough, newTemplate(name))
	all := name + "-empty"
	createTemplate(t, borough, &v1.NamespaceTemplate{ObjectMeta: metav1.ObjectMeta{Name: all}, Spec: v1.NamespaceTemplateSpec{
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: all, Operator: metav1.LabelSelectorOpExists}}},
	}})
	lines := strings.Split(borough.Kubectl(t, "get", "nst", name, all), "\n")
	wantEqual(t, "the columns", strings.Fields(lines[0]), []string{"NAME", "SELECTOR", "LIMITRANGE", "RESOURCEQUOTA", "ROLEBINDING", "AGE"})
	wantEqual(t, "the template", strings.Fields(lines[1])[:5], []string{name, "template=" + name, name, name, name})
	wantEqual(t, "the empty one", strings.Fields(lines[2])[:5], []string{all, all, "<none>", "<none>", "<none>"})
}
