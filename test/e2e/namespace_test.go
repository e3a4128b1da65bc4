// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	applyv1 "github.com/borough-io/borough/pkg/generated/applyconfiguration/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

func TestNamespaceCreate(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	for _, test := range []struct {
		name       string
		sent       v1.Namespace
		finalizers []v1.FinalizerName
	}{
		{"empty", v1.Namespace{}, []v1.FinalizerName{"kubernetes"}},
		{"finalizers kept", v1.Namespace{Spec: v1.NamespaceSpec{Finalizers: []v1.FinalizerName{"openshift.com/origin"}}}, []v1.FinalizerName{"openshift.com/origin", "kubernetes"}},
		{"own finalizer sent", v1.Namespace{Spec: v1.NamespaceSpec{Finalizers: []v1.FinalizerName{"kubernetes", "a.io/b"}}}, []v1.FinalizerName{"kubernetes", "a.io/b"}},
		{"status ignored", v1.Namespace{Status: v1.NamespaceStatus{Phase: v1.NamespaceTerminating}}, []v1.FinalizerName{"kubernetes"}},
		{"label corrected", v1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kubernetes.io/metadata.name": "other", "a": "b"}}}, []v1.FinalizerName{"kubernetes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.sent.GenerateName = "create-"
			got, err := namespaces.Create(t.Context(), &test.sent, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "finalizers", got.Spec.Finalizers, test.finalizers)
			wantEqual(t, "status", got.Status, v1.NamespaceStatus{Phase: v1.NamespaceActive})
			wantEqual(t, "label", got.Labels["kubernetes.io/metadata.name"], got.Name)
			if got.UID == "" || got.ResourceVersion == "" || got.CreationTimestamp.IsZero() || got.Namespace != "" {
				t.Errorf("metadata is incomplete: %+v", got.ObjectMeta)
			}
		})
	}
}

func TestNamespaceGenerateName(t *testing.T) {
	t.Parallel()
	base := strings.Repeat("x", 62)
	ns, err := alone.Client(t).TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: base}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(ns.Name) != 63 || !strings.HasPrefix(ns.Name, base[:58]) {
		t.Errorf("got the name %q, want 58 characters of the base and 5 more", ns.Name)
	}
	wantEqual(t, "label", ns.Labels["kubernetes.io/metadata.name"], ns.Name)
}

func TestNamespaceUpdate(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	created, err := namespaces.Get(t.Context(), newNamespace(t, alone), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	sent := created.DeepCopy()
	sent.Labels = map[string]string{"a": "b"}
	sent.Spec.Finalizers = nil
	sent.Status = v1.NamespaceStatus{Phase: v1.NamespaceTerminating}
	got, err := namespaces.Update(t.Context(), sent, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "labels", got.Labels, map[string]string{"a": "b", "kubernetes.io/metadata.name": created.Name})
	wantEqual(t, "spec", got.Spec, created.Spec)
	wantEqual(t, "status", got.Status, created.Status)

	if _, err = namespaces.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update with an old resourceVersion: got %v, want a conflict", err)
	}
	sent.ResourceVersion = ""
	if _, err = namespaces.Update(t.Context(), sent, metav1.UpdateOptions{}); err != nil {
		t.Errorf("update without resourceVersion: %v", err)
	}
	sent.Name = "not-there"
	if _, err = namespaces.Update(t.Context(), sent, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Errorf("update of a Namespace that does not exist: got %v, want not found", err)
	}
}

func TestNamespaceStatus(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	ns, err := namespaces.Get(t.Context(), newNamespace(t, alone), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	bad := ns.DeepCopy()
	bad.Status.Phase = v1.NamespaceTerminating
	_, err = namespaces.UpdateStatus(t.Context(), bad, metav1.UpdateOptions{})
	status := wantCode(t, err, http.StatusUnprocessableEntity)
	wantEqual(t, "field", status.Details.Causes[0].Field, "status.Phase") // spelled like in core/v1

	good := ns.DeepCopy()
	good.Spec.Finalizers = nil
	good.Status.Conditions = []v1.NamespaceCondition{{Type: v1.NamespaceContentRemaining, Status: "False", Reason: "ContentRemoved"}}
	got, err := namespaces.UpdateStatus(t.Context(), good, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "spec", got.Spec, ns.Spec)
	if len(got.Status.Conditions) != 1 {
		t.Errorf("got conditions %+v, want the one that was sent", got.Status.Conditions)
	}
}

func TestNamespaceFinalize(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	http := alone.HTTP(t)
	for _, method := range []string{"PUT", "POST"} {
		t.Run(method, func(t *testing.T) {
			name := newNamespace(t, alone)
			ns, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ns.TypeMeta = metav1.TypeMeta{APIVersion: "tenancy.borough.io/v1", Kind: "Namespace"}
			ns.Spec.Finalizers = []v1.FinalizerName{"a.io/b"}
			ns.Status.Phase = v1.NamespaceTerminating
			answer := http.Do(t, method, api+"/namespaces/"+name+"/finalize", toJSON(t, ns), "Content-Type", asJSON)
			if answer.Code/100 != 2 {
				t.Fatalf("got %v, want success", answer)
			}
			got, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "finalizers", got.Spec.Finalizers, []v1.FinalizerName{"a.io/b"})
			wantEqual(t, "phase", got.Status.Phase, v1.NamespaceActive)

			ns.ResourceVersion = ""
			ns.Spec.Finalizers = []v1.FinalizerName{"unqualified"}
			answer = http.Do(t, method, api+"/namespaces/"+name+"/finalize", toJSON(t, ns), "Content-Type", asJSON)
			wantStatus(t, answer, 422, "spec.finalizers")
		})
	}
}

// TestNamespaceDelete checks each step of the deletion of a Namespace.
func TestNamespaceDelete(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	http := alone.HTTP(t)
	name := newNamespace(t, alone)
	path := api + "/namespaces/" + name
	before, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	wantStatus(t, http.Do(t, "DELETE", api+"/namespaces/not-there", nil), 404, "namespaces.tenancy.borough.io \"not-there\" not found")

	for _, preconditions := range []metav1.Preconditions{
		{UID: new(types.UID("11111111-2222-3333-4444-555555555555"))},
		{ResourceVersion: new("1")},
	} {
		err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{Preconditions: &preconditions})
		message := wantCode(t, err, 409).Message
		if preconditions.UID != nil {
			wantContains(t, message, "11111111-2222-3333-4444-555555555555", string(before.UID))
		} else {
			wantContains(t, message, "precondition: 1", before.ResourceVersion)
		}
	}

	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
		t.Fatalf("delete as a dry run: %v", err)
	}
	got, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the Namespace after a dry run", got, before)

	var first, second v1.Namespace
	wantAnswer(t, http.Do(t, "DELETE", path, nil), 200).JSON(t, &first)
	if first.DeletionTimestamp == nil || first.DeletionGracePeriodSeconds != nil || first.Status.Phase != v1.NamespaceTerminating {
		t.Errorf("got %+v, want it Terminating with a deletionTimestamp and no grace period", first)
	}
	wantAnswer(t, http.Do(t, "DELETE", path, nil), 200).JSON(t, &second)
	wantEqual(t, "the response to the second DELETE", second, first)

	_, err = namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	wantContains(t, wantCode(t, err, 409).Message, "object is being deleted")

	active := first.DeepCopy()
	active.Status.Phase = v1.NamespaceActive
	_, err = namespaces.UpdateStatus(t.Context(), active, metav1.UpdateOptions{})
	wantCode(t, err, 422)

	first.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(t.Context(), name, &first, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("finalize: %v", err)
	}
	if _, err := namespaces.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: got %v, want not found", err)
	}
}

// TestNamespaceDeleteAtOnce deletes a Namespace without finalizers.
func TestNamespaceDeleteAtOnce(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	name := newNamespace(t, alone)
	if _, err := namespaces.Finalize(t.Context(), name, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("finalize: %v", err)
	}
	var removed v1.Namespace
	wantAnswer(t, alone.HTTP(t).Do(t, "DELETE", api+"/namespaces/"+name, nil), 200).JSON(t, &removed)
	wantEqual(t, "the name in the response", removed.Name, name)
	if _, err := namespaces.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after DELETE: got %v, want not found", err)
	}
}

// TestPropagationPolicies checks that a server without a garbage collector ignores
// propagation policies: nothing would remove their finalizers.
func TestPropagationPolicies(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		ns := newNamespace(t, borough)
		createPod(t, borough, ns, newPod("p"))
		options := metav1.DeleteOptions{PropagationPolicy: &policy}
		if err := borough.Client(t).TenancyV1().Pods(ns).Delete(t.Context(), "p", options); err != nil {
			t.Fatal(err)
		}
		wantAnswer(t, borough.HTTP(t).Do(t, "GET", api+"/namespaces/"+ns+"/pods/p", nil), 404)
		if err := borough.Client(t).TenancyV1().Namespaces().Delete(t.Context(), ns, options); err != nil {
			t.Fatal(err)
		}
		poll.Eventually(t, gone(t, borough, ns))
	}
}

// TestNamespaceMetadataFinalizers checks that a Namespace also waits for the
// finalizers in its metadata, and that removing the last one removes it.
func TestNamespaceMetadataFinalizers(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	for _, test := range []struct {
		policy     metav1.DeletionPropagation
		finalizers []string
	}{
		{metav1.DeletePropagationBackground, []string{"a.io/b"}},
		{metav1.DeletePropagationOrphan, []string{"a.io/b", "orphan"}},
		{metav1.DeletePropagationForeground, []string{"a.io/b", "foregroundDeletion"}},
	} {
		t.Run(string(test.policy), func(t *testing.T) {
			ns, err := namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
				GenerateName: "metadata-", Finalizers: []string{"a.io/b"},
			}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := namespaces.Delete(t.Context(), ns.Name, metav1.DeleteOptions{PropagationPolicy: &test.policy}); err != nil {
				t.Fatalf("delete: %v", err)
			}
			held, err := namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			held.Spec.Finalizers = nil
			if _, err = namespaces.Finalize(t.Context(), ns.Name, held, metav1.UpdateOptions{}); err != nil {
				t.Fatalf("finalize: %v", err)
			}
			if held, err = namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{}); err != nil {
				t.Fatalf("the Namespace was removed although its metadata has finalizers: %v", err)
			}
			wantEqual(t, "metadata.finalizers", held.Finalizers, test.finalizers)
			if _, err := namespaces.Patch(t.Context(), ns.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				t.Fatalf("patch: %v", err)
			}
			if _, err := namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("after the last finalizer: got %v, want not found", err)
			}
		})
	}
}

func TestNamespaceSelectors(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	name := newNamespace(t, alone)
	byName := "metadata.name=" + name
	for _, test := range []struct {
		options metav1.ListOptions
		found   int
	}{
		{metav1.ListOptions{FieldSelector: byName}, 1},
		{metav1.ListOptions{FieldSelector: byName + ",status.phase=Active"}, 1},
		{metav1.ListOptions{FieldSelector: byName + ",status.phase=Terminating"}, 0},
		{metav1.ListOptions{LabelSelector: "kubernetes.io/metadata.name=" + name}, 1},
		{metav1.ListOptions{LabelSelector: "kubernetes.io/metadata.name in (a, b)"}, 0},
	} {
		list, err := namespaces.List(t.Context(), test.options)
		if err != nil {
			t.Errorf("list %+v: %v", test.options, err)
		} else if len(list.Items) != test.found {
			t.Errorf("list %+v: found %d, want %d", test.options, len(list.Items), test.found)
		}
	}
	_, err := namespaces.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.finalizers=kubernetes"})
	wantContains(t, wantCode(t, err, 400).Message, "field label not supported: spec.finalizers")
}

func TestNamespaceDryRun(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	ns, err := namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "dry-"}}, metav1.CreateOptions{DryRun: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: got %v, want not found", err)
	}
}

func TestNamespaceVerbs(t *testing.T) {
	t.Parallel()
	http := alone.HTTP(t)
	wantStatus(t, http.Do(t, "DELETE", api+"/namespaces", nil), 405, "")
	wantStatus(t, http.Do(t, "DELETE", api+"/namespaces/default", nil), 403, "this namespace may not be deleted")
}

// TestNamespaceServerSideApply checks that a manager owns only fields that its
// request can write.
func TestNamespaceServerSideApply(t *testing.T) {
	t.Parallel()
	namespaces := alone.Client(t).TenancyV1().Namespaces()
	name := "apply-" + newNamespace(t, alone)
	options := metav1.ApplyOptions{FieldManager: "one"}
	apply := func(value string) *applyv1.NamespaceApplyConfiguration {
		return applyv1.Namespace(name).WithLabels(map[string]string{"a": value})
	}
	if _, err := namespaces.Apply(t.Context(), apply("1"), options); err != nil {
		t.Fatalf("apply creates: %v", err)
	}
	if _, err := namespaces.Apply(t.Context(), apply("2"), options); err != nil {
		t.Fatalf("apply again: %v", err)
	}
	_, err := namespaces.Apply(t.Context(), apply("3"), metav1.ApplyOptions{FieldManager: "two"})
	wantContains(t, wantCode(t, err, 409).Message, "conflict with \"one\"")
	if _, err := namespaces.Apply(t.Context(), apply("3"), metav1.ApplyOptions{FieldManager: "two", Force: true}); err != nil {
		t.Fatalf("apply by force: %v", err)
	}
	status := applyv1.Namespace(name).WithStatus(applyv1.NamespaceStatus().WithConditions(
		applyv1.NamespaceCondition().WithType(v1.NamespaceContentRemaining).WithStatus("False")))
	got, err := namespaces.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: "three"})
	if err != nil {
		t.Fatalf("apply the status: %v", err)
	}
	wantEqual(t, "label", got.Labels["a"], "3")
	owned := map[string]string{}
	for _, entry := range got.ManagedFields {
		owned[entry.Manager+"/"+entry.Subresource] = entry.FieldsV1.GetRawString()
	}
	wantContains(t, owned["two/"], "f:labels")
	wantContains(t, owned["three/status"], "f:conditions")
	for owner, fields := range owned {
		if strings.HasSuffix(owner, "/") && strings.Contains(fields, "f:status") {
			t.Errorf("%s owns the status through the main resource: %s", owner, fields)
		}
	}
}
