// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestCoreKeepsOwnFields changes a protected Namespace through the core group in every
// way. It stays protected, and who manages the protection stays the same.
func TestCoreKeepsOwnFields(t *testing.T) {
	t.Parallel()
	own, core := borough.Client(t).TenancyV1().Namespaces(), coreClient(t, borough, "").CoreV1().Namespaces()
	ns := newNamespace(t, borough)
	protect := []byte(fmt.Sprintf(`{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":%q,"labels":{"a":"own"}},"spec":{"deletionProtection":true}}`, ns))
	if _, err := own.Patch(t.Context(), ns, types.ApplyPatchType, protect, metav1.PatchOptions{FieldManager: "guard"}); err != nil {
		t.Fatal(err)
	}
	manager := func(got *v1.Namespace) (managers []string) {
		for _, entry := range got.ManagedFields {
			var fields struct {
				Spec map[string]any `json:"f:spec"`
			}
			if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
				t.Fatal(err)
			}
			if _, ok := fields.Spec["f:deletionProtection"]; ok {
				managers = append(managers, entry.Manager)
			}
		}
		return managers
	}
	apply := func(labels map[string]string, manager string) error {
		_, err := core.Apply(t.Context(), coreapply.Namespace(ns).WithLabels(labels), metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	patch := func(pt types.PatchType, body string, subresources ...string) error {
		_, err := core.Patch(t.Context(), ns, pt, []byte(body), metav1.PatchOptions{}, subresources...)
		return err
	}
	modify := func(change func(*corev1.Namespace), write func(*corev1.Namespace) error) func() error {
		return func() error {
			got, err := core.Get(t.Context(), ns, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(got)
			return write(got)
		}
	}
	label := func(n *corev1.Namespace) { n.Labels["updated"] = "yes" }
	for _, step := range []struct {
		name  string
		write func() error
	}{
		{"update", modify(label, func(n *corev1.Namespace) error {
			_, err := core.Update(t.Context(), n, metav1.UpdateOptions{})
			return err
		})},
		{"update of the status", modify(label, func(n *corev1.Namespace) error {
			_, err := core.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
			return err
		})},
		{"finalize", modify(label, func(n *corev1.Namespace) error {
			_, err := core.Finalize(t.Context(), n, metav1.UpdateOptions{})
			return err
		})},
		{"merge patch", func() error { return patch(types.MergePatchType, `{"metadata":{"labels":{"merge":"a"}}}`) }},
		{"merge patch of the whole", func() error { return patch(types.MergePatchType, `{"spec":null,"status":null}`) }},
		{"JSON patch", func() error {
			return patch(types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/json","value":"a"}]`)
		}},
		{"strategic merge patch", func() error {
			return patch(types.StrategicMergePatchType, `{"metadata":{"annotations":{"strategic":"a"}}}`)
		}},
		{"apply by another", func() error { return apply(map[string]string{"core": "a"}, "other") }},
		{"apply by the same", func() error { return apply(map[string]string{"a": "own"}, "guard") }},
		{"apply of nothing by the same", func() error { return apply(nil, "guard") }},
	} {
		if err := step.write(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		got, err := own.Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !got.Spec.DeletionProtection || !cmp.Equal(manager(got), []string{"guard"}) {
			t.Errorf("after %s: protected %v by %v", step.name, got.Spec.DeletionProtection, manager(got))
		}
		// Once more changes nothing, also at a later time.
		awaitLaterTime(t, got.ManagedFields)
		if err := step.write(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		again, err := own.Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, step.name+", again: resourceVersion", again.ResourceVersion, got.ResourceVersion)
		managers := map[string]bool{}
		for _, entry := range again.ManagedFields {
			managers[fmt.Sprint(entry.Manager, entry.Operation, entry.Subresource)] = true
		}
		wantEqual(t, step.name+": managers", len(managers), len(again.ManagedFields))
	}
	if err := core.Delete(t.Context(), ns, metav1.DeleteOptions{}); !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, v1.NamespaceProtectedCause) {
		t.Errorf("delete: %v", err)
	}
	// A manager that applies without it removes it, through our group.
	if _, err := own.Patch(t.Context(), ns, types.ApplyPatchType, []byte(fmt.Sprintf(`{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":%q}}`, ns)), metav1.PatchOptions{FieldManager: "guard"}); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, borough, ns)
}

// TestCoreApply applies through both groups: a field that was applied through one is
// managed through the other, too.
func TestCoreApply(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	core := coreClient(t, borough, "").CoreV1().Pods(ns)
	own := borough.Client(t).TenancyV1().Pods(ns)
	applyOwn := func(manager, image, label string) error {
		_, err := own.Patch(t.Context(), "p", types.ApplyPatchType, []byte(fmt.Sprintf(
			`{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"p","labels":{%q:"a"}},"spec":{"containers":[{"name":"c","image":%q}]}}`, label, image)),
			metav1.PatchOptions{FieldManager: manager})
		return err
	}
	applyCore := func(manager, image, label string) error {
		_, err := core.Apply(t.Context(), coreapply.Pod("p", ns).WithLabels(map[string]string{label: "a"}).
			WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("c").WithImage(image))), metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	for _, step := range []struct {
		name     string
		apply    func(manager, image, label string) error
		manager  string
		image    string
		label    string
		conflict bool
	}{
		{"ours creates", applyOwn, "a", "i:1", "first", false},
		{"core agrees", applyCore, "b", "i:1", "second", false},
		{"core conflicts", applyCore, "b", "i:2", "second", true},
		{"core drops the image of another", applyCore, "a", "i:1", "third", false},
		{"ours conflicts", applyOwn, "c", "i:2", "fourth", true},
		{"ours drops its label", applyOwn, "b", "i:1", "fifth", false},
	} {
		if err := step.apply(step.manager, step.image, step.label); apierrors.IsConflict(err) != step.conflict || !step.conflict && err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	got, err := core.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "labels", got.Labels, map[string]string{"third": "a", "fifth": "a"})
	wantEqual(t, "managers", len(got.ManagedFields), 2)
	extracted, err := coreapply.ExtractPod(got, "a")
	if err != nil || !cmp.Equal(extracted.Labels, map[string]string{"third": "a"}) {
		t.Errorf("extracted %+v, error %v", extracted, err)
	}
}

// TestCoreManagedFieldsInOwnGroup sends managed fields that it got through the core group
// to our group. One of their managers then applies there, which keeps the protection.
func TestCoreManagedFieldsInOwnGroup(t *testing.T) {
	t.Parallel()
	own, core := borough.Client(t).TenancyV1().Namespaces(), coreClient(t, borough, "").CoreV1().Namespaces()
	applied := newNamespace(t, borough)
	if _, err := core.Apply(t.Context(), coreapply.Namespace(applied).WithLabels(map[string]string{"a": "1"}), metav1.ApplyOptions{FieldManager: "m"}); err != nil {
		t.Fatal(err)
	}
	got, err := core.Get(t.Context(), applied, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		write func(*v1.Namespace) (*v1.Namespace, error)
	}{
		{"update", func(ns *v1.Namespace) (*v1.Namespace, error) {
			return own.Update(t.Context(), ns, metav1.UpdateOptions{})
		}},
		{"create", func(ns *v1.Namespace) (*v1.Namespace, error) {
			ns.Name, ns.GenerateName, ns.ResourceVersion = "", "e2e-", ""
			ns.Labels = nil // the creator takes over what it writes, and m would be no manager
			return own.Create(t.Context(), ns, metav1.CreateOptions{})
		}},
	} {
		protected, err := test.write(&v1.Namespace{ObjectMeta: *got.ObjectMeta.DeepCopy(), Spec: v1.NamespaceSpec{DeletionProtection: true}})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for _, entry := range protected.ManagedFields {
			wantEqual(t, test.name+": the version of "+entry.Manager, entry.APIVersion, v1.SchemeGroupVersion.String())
		}
		apply := []byte(fmt.Sprintf(`{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":%q,"labels":{"b":"2"}}}`, protected.Name))
		after, err := own.Patch(t.Context(), protected.Name, types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "m"})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, test.name+": deletionProtection", after.Spec.DeletionProtection, true)
		wantEqual(t, test.name+": the label", after.Labels["b"], "2")
	}
}

// TestFinalizeByPost writes spec.finalizers through both groups by POST. All field managers
// stay.
func TestFinalizeByPost(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	own := borough.Client(t).TenancyV1()
	apply := fmt.Sprintf(`{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":%q,"labels":{"a":"1"}},"spec":{"deletionProtection":true}}`, ns)
	before, err := own.Namespaces().Patch(t.Context(), ns, types.ApplyPatchType, []byte(apply), metav1.PatchOptions{FieldManager: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for group, client := range map[string]rest.Interface{"ours": own.RESTClient(), "core": coreClient(t, borough, "").CoreV1().RESTClient()} {
		finalizer := v1.FinalizerName("example.com/" + group)
		body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"a":"1"}},"spec":{"finalizers":["kubernetes",%q]}}`, ns, finalizer)
		if err := client.Post().Resource("namespaces").Name(ns).SubResource("finalize").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		after, err := own.Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, group+": finalizers", after.Spec.Finalizers, []v1.FinalizerName{v1.FinalizerKubernetes, finalizer})
		wantEqual(t, group+": managedFields", after.ManagedFields, before.ManagedFields)
	}
}
