// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/poll"
)

// newTeamNamespaces creates two of our Namespaces. Only the first has the label
// team; of the cluster's namespaces of the same names, only the second has it.
func newTeamNamespaces(t *testing.T, team string) (inside, outside string) {
	t.Helper()
	label := map[string]string{"team": team}
	create := func(ours, core map[string]string) string {
		t.Helper()
		ns, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(),
			&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newName("webhooks"), Labels: ours}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = cluster.Client(t).CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name, Labels: core}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return ns.Name
	}
	return create(label, nil), create(nil, label)
}

// marked returns a Pod that denyMarked denies.
func marked() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "marked-", Labels: map[string]string{"deny": "yes"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/image:1"}}},
	}
}

// awaitDenied waits until the server knows a webhook that denies marked Pods.
// It uses dry runs.
func awaitDenied(t *testing.T, client versioned.Interface, namespace string) {
	t.Helper()
	poll.Eventually(t, func() string {
		_, err := client.TenancyV1().Pods(namespace).Create(t.Context(), marked(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return "no webhook denies a marked Pod"
		}
		if !strings.Contains(err.Error(), "denied the request: marked with deny") {
			return err.Error()
		}
		return ""
	})
}

// TestWebhooks checks that the cluster's webhooks see and change objects of our
// kinds in the Namespaces that they select.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	team := newName("team")
	inside, outside := newTeamNamespaces(t, team)
	user := newName("grace")
	config, err := cluster.UserConfig(user, "red team", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	clientset, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client := clientset.TenancyV1()
	mutating, validating := newWebhook(t, addLabel), newWebhook(t, denyMarked)
	registerMutating(t, mutating, team, []string{"pods", "limitranges", "namespaces"})
	registerValidating(t, validating, team, []string{"pods", "pods/*", "limitranges", "namespaces"})
	awaitDenied(t, clientset, inside)
	poll.Eventually(t, func() string {
		unmarked := marked()
		unmarked.Labels = nil
		pod, err := client.Pods(inside).Create(ctx, unmarked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err.Error()
		}
		if pod.Labels["webhook"] == "" {
			return "no webhook changes what is created"
		}
		return ""
	})
	// wantSeen fails the test unless the validating webhook has seen exactly one
	// such request from the user, and returns it.
	wantSeen := func(operation admissionv1.Operation, kind, resource, subresource, namespace, name string) *admissionv1.AdmissionRequest {
		t.Helper()
		seen := validating.seen(func(r *admissionv1.AdmissionRequest) bool {
			return r.Operation == operation && r.Resource.Resource == resource && r.SubResource == subresource && r.Name == name && !*r.DryRun
		})
		if len(seen) != 1 {
			t.Fatalf("%s of %s %s: the webhook saw %d requests, want one", operation, resource, name, len(seen))
		}
		r := seen[0]
		if want := (metav1.GroupVersionKind{Group: v1.GroupName, Version: "v1", Kind: kind}); r.Kind != want || *r.RequestKind != want {
			t.Errorf("%s of %s %s: kinds %v and %v, want %v", operation, resource, name, r.Kind, r.RequestKind, want)
		}
		if want := (metav1.GroupVersionResource{Group: v1.GroupName, Version: "v1", Resource: resource}); r.Resource != want || *r.RequestResource != want {
			t.Errorf("%s of %s %s: resources %v and %v, want %v", operation, resource, name, r.Resource, r.RequestResource, want)
		}
		if r.Namespace != namespace {
			t.Errorf("%s of %s %s: namespace %q, want %q", operation, resource, name, r.Namespace, namespace)
		}
		if got, want := objectMeta(r).APIVersion, v1.SchemeGroupVersion.String(); got != want {
			t.Errorf("%s of %s %s: the object's version is %q, want %q", operation, resource, name, got, want)
		}
		groups := slices.Sorted(slices.Values(r.UserInfo.Groups))
		if diff := cmp.Diff([]string{"red team", "system:authenticated", "system:masters"}, groups); r.UserInfo.Username != user || diff != "" {
			t.Errorf("%s of %s %s: user %q, groups (-want +got):\n%s", operation, resource, name, r.UserInfo.Username, diff)
		}
		return r
	}

	// Test content in both Namespaces.
	pod := marked()
	pod.Name, pod.GenerateName, pod.Labels = "web", "", nil
	created, err := client.Pods(inside).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil || created.Labels["webhook"] != "was-here" {
		t.Fatalf("a Pod in the selected Namespace: labels %v, error %v", created.Labels, err)
	}
	wantSeen(admissionv1.Create, "Pod", "pods", "", inside, "web")
	limits, err := client.LimitRanges(inside).Create(ctx, newLimitRange(corev1.LimitTypePod), metav1.CreateOptions{})
	if err != nil || limits.Labels["webhook"] != "was-here" {
		t.Fatalf("a LimitRange in the selected Namespace: labels %v, error %v", limits.Labels, err)
	}
	wantSeen(admissionv1.Create, "LimitRange", "limitranges", "", inside, "limits")
	if free, err := client.Pods(outside).Create(ctx, marked(), metav1.CreateOptions{}); err != nil || free.Labels["webhook"] != "" {
		t.Errorf("a Pod in a Namespace where only the cluster's namespace matches: labels %v, error %v", free.Labels, err)
	}
	if _, err := client.LimitRanges(inside).Patch(ctx, "limits", types.MergePatchType, []byte(`{"metadata":{"labels":{"deny":"yes"}}}`), metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a patch that the webhook denies: got error %v", err)
	}
	if _, err := client.Pods(inside).Patch(ctx, "web", types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Error(err)
	}
	update := wantSeen(admissionv1.Update, "Pod", "pods", "status", inside, "web")
	if !strings.Contains(string(update.OldObject.Raw), `"Pending"`) || !strings.Contains(string(update.Object.Raw), `"Running"`) {
		t.Errorf("an update of the status: from %s to %s", update.OldObject.Raw, update.Object.Raw)
	}
	if err := client.LimitRanges(inside).Delete(ctx, "limits", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	wantSeen(admissionv1.Delete, "LimitRange", "limitranges", "", inside, "limits")
	// A deletecollection has no object name; the name is in the old object.
	if err := client.Pods(inside).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if seen := validating.seen(func(r *admissionv1.AdmissionRequest) bool {
		return r.Operation == admissionv1.Delete && r.Namespace == inside && objectMeta(r).UID == created.UID
	}); len(seen) == 0 {
		t.Error("the webhook did not see a Pod in a deletecollection")
	}

	// For Namespaces, their own labels count, also on create.
	labels := map[string]string{"team": team}
	own := newName("webhooks")
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own, Labels: map[string]string{"team": team, "deny": "yes"}}}
	if _, err := client.Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a Namespace that the webhook denies: got error %v", err)
	}
	namespace.Name, namespace.Labels = own+"-2", labels
	if namespace, err = client.Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil || namespace.Labels["webhook"] != "was-here" {
		t.Fatalf("a Namespace: labels %v, error %v", namespace.Labels, err)
	}
	wantSeen(admissionv1.Create, "Namespace", "namespaces", "", "", namespace.Name)
	if _, err := client.Namespaces().Patch(ctx, namespace.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"stage":"two"}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	wantSeen(admissionv1.Update, "Namespace", "namespaces", "", "", namespace.Name)
	// While the watch cache is behind, the webhook is asked about the older Namespace, too.
	poll.Eventually(t, func() string {
		cached, err := client.Namespaces().Get(ctx, namespace.Name, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil || cached.Labels["stage"] != "two" {
			return fmt.Sprintf("the watch cache has the Namespace %v, error %v", cached, err)
		}
		return ""
	})
	if err := client.Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	wantSeen(admissionv1.Delete, "Namespace", "namespaces", "", namespace.Name, namespace.Name)
	if other := validating.seen(func(r *admissionv1.AdmissionRequest) bool { return r.Namespace == outside }); len(other) > 0 {
		t.Errorf("the webhook saw a Namespace that it does not select: %v", other[0])
	}
}

// TestWebhookFails tests failing webhooks with both failure policies.
func TestWebhookFails(t *testing.T) {
	t.Parallel()
	client := cluster.BoroughClient(t).TenancyV1()
	dead := newWebhook(t, denyMarked)
	dead.server.Close()
	inside := map[arv1.FailurePolicyType]string{}
	for _, policy := range []arv1.FailurePolicyType{arv1.Ignore, arv1.Fail} {
		team := newName("team")
		inside[policy], _ = newTeamNamespaces(t, team)
		registerValidating(t, dead, team, []string{"pods"}, func(hook *arv1.ValidatingWebhook) { hook.FailurePolicy = &policy })
	}
	poll.Eventually(t, func() string {
		_, err := client.Pods(inside[arv1.Fail]).Create(t.Context(), marked(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "failed calling webhook") {
			return "a webhook that must answer and does not: the error is " + errorText(err)
		}
		return ""
	})
	// The server gets them in the order of their creation, so it knows both.
	if _, err := client.Pods(inside[arv1.Ignore]).Create(t.Context(), marked(), metav1.CreateOptions{}); err != nil {
		t.Errorf("a webhook with the failure policy Ignore: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

// TestWebhookHoldsUp tests a webhook that denies the deletion of a Pod. The
// conditions of the terminating Namespace report it.
func TestWebhookHoldsUp(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clientset := cluster.BoroughClient(t)
	client := clientset.TenancyV1()
	team := newName("team")
	namespace, _ := newTeamNamespaces(t, team)
	held, err := client.Pods(namespace).Create(ctx, marked(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove := registerValidating(t, newWebhook(t, denyMarked), team, []string{"pods"})
	awaitDenied(t, clientset, namespace)

	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "delete", namespaces, namespace, "--wait=false")
	kubectl.Run(t, "wait", namespaces+"/"+namespace, "--for=condition=NamespaceDeletionContentFailure", waitTimeout)
	wantContains(t, kubectl.Run(t, "get", namespaces, namespace, "-o", `jsonpath={.status.conditions[?(@.type=="NamespaceDeletionContentFailure")].message}`),
		"denied the request: marked with deny")
	if got, err := client.Pods(namespace).Get(ctx, held.Name, metav1.GetOptions{}); err != nil || got.UID != held.UID {
		t.Errorf("the Pod whose deletion is denied: %v", err)
	}
	remove()
	kubectl.Run(t, "wait", namespaces+"/"+namespace, "--for=delete", waitTimeout)
}
