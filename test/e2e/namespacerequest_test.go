// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	typed "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// newRequester returns the name of a new user who may request Namespaces.
func newRequester(t *testing.T, b *harness.Borough) string {
	t.Helper()
	user := "requester-" + newNamespace(t, b)
	mayRequest(t, b, user)
	return user
}

func mayRequest(t *testing.T, b *harness.Borough, user string) {
	t.Helper()
	grant(t, b, "", "namespace-requester", user)
	bindings := rights(t, b).ClusterRoleBindings()
	t.Cleanup(func() {
		if err := bindings.Delete(context.Background(), user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func newRequest(name string) *v1.NamespaceRequest {
	return &v1.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// requestsOf returns the client with which a user requests Namespaces.
func requestsOf(t *testing.T, b *harness.Borough, user string) typed.NamespaceRequestInterface {
	t.Helper()
	return clientAs(t, b, user).TenancyV1().NamespaceRequests()
}

// TestNamespaceRequest requests Namespaces with kubectl and with a client, and uses
// them in the next request.
func TestNamespaceRequest(t *testing.T) {
	t.Parallel()
	alice := newRequester(t, borough)
	name := alice + "-1"
	kubectl := func(stdin string, args ...string) string {
		t.Helper()
		stdout, stderr, err := borough.TryKubectl(t, stdin, append([]string{"--as=" + alice}, args...)...)
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, stderr)
		}
		return stdout
	}
	manifest := fmt.Sprintf("{apiVersion: tenancy.borough.io/v1, kind: NamespaceRequest, metadata: {name: %s, labels: {team: a}, annotations: {note: x}}}", name)

	wantEqual(t, "the dry run", kubectl(manifest, "create", "-f", "-", "--dry-run=server"), "namespacerequest.tenancy.borough.io/"+name+" created (server dry run)\n")
	if _, err := borough.Client(t).TenancyV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the dry run: %v", err)
	}
	wantEqual(t, "create", kubectl(manifest, "create", "-f", "-"), "namespacerequest.tenancy.borough.io/"+name+" created\n")
	wantContains(t, kubectl("", "get", "ns", name), "Active")
	wantContains(t, kubectl("", "auth", "can-i", "create", "rolebindings", "-n", name), "yes")

	ns, err := borough.Client(t).TenancyV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "labels", ns.Labels, map[string]string{"team": "a", "kubernetes.io/metadata.name": name})
	wantEqual(t, "annotations", ns.Annotations, map[string]string{"note": "x", v1.RequesterAnnotation: alice})
	wantEqual(t, "finalizers", ns.Spec.Finalizers, []v1.FinalizerName{v1.FinalizerKubernetes})
	binding, err := rights(t, borough).RoleBindings(name).Get(t.Context(), "admin", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the role", binding.RoleRef, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"})
	wantEqual(t, "the subjects", binding.Subjects, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: alice}})
	if ns.ResourceVersion != binding.ResourceVersion {
		t.Errorf("the namespace is of revision %s, the rolebinding of %s", ns.ResourceVersion, binding.ResourceVersion)
	}
	for object, fields := range map[string][]metav1.ManagedFieldsEntry{"namespace": ns.ManagedFields, "rolebinding": binding.ManagedFields} {
		if len(fields) != 1 || fields[0].Manager != "kubectl-create" || fields[0].Operation != metav1.ManagedFieldsOperationUpdate {
			t.Errorf("field managers of the %s: %+v", object, fields)
		}
	}

	// Others see nothing of it.
	bob := newRequester(t, borough)
	if _, err := clientAs(t, borough, bob).TenancyV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another user: %v", err)
	}
	list, err := clientAs(t, borough, bob).TenancyV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("another user lists %v, %v", list.Items, err)
	}
	_, err = requestsOf(t, borough, bob).Create(t.Context(), newRequest(name), metav1.CreateOptions{})
	if want := fmt.Sprintf("namespaces.tenancy.borough.io %q already exists", name); !apierrors.IsAlreadyExists(err) || err.Error() != want {
		t.Errorf("a name that is taken: got %v, want %s", err, want)
	}
	_, err = requestsOf(t, borough, bob).Create(t.Context(), newRequest(name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("a name that is taken, in a dry run: %v", err)
	}

	for round := range 20 {
		request := &v1.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: alice + "-"}}
		created, err := requestsOf(t, borough, alice).Create(t.Context(), request, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods := clientAs(t, borough, alice).TenancyV1().Pods(created.Name)
		pod, err := pods.Create(t.Context(), newPod("p"), metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("round %d: right after the request: %v", round, err)
		}
		list, err := clientAs(t, borough, alice).TenancyV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != round+2 {
			t.Fatalf("round %d: the user lists %d namespaces, %v", round, len(list.Items), err)
		}
		ns, err := clientAs(t, borough, alice).TenancyV1().Namespaces().Get(t.Context(), pod.Namespace, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "status", created.Status, v1.NamespaceRequestStatus{NamespaceUID: ns.UID, RoleBinding: "admin"})
	}
}

// TestNamespaceRequestInWatch watches Namespaces while some are requested: the user gets
// one event for each, others none.
func TestNamespaceRequestInWatch(t *testing.T) {
	t.Parallel()
	alice := newRequester(t, borough)
	events := map[string]watch.Interface{}
	for _, user := range []string{alice, alice + "-friend"} {
		w, err := clientAs(t, borough, user).TenancyV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		events[user] = w
	}
	next := func(user string) string {
		t.Helper()
		event, ok := <-events[user].ResultChan()
		if !ok {
			t.Fatalf("the watch of %s ended", user)
		}
		ns, ok := event.Object.(*v1.Namespace)
		if !ok {
			t.Fatalf("%s gets %v", user, event)
		}
		return fmt.Sprint(event.Type, " ", ns.Name, " ", ns.Labels["round"])
	}
	var last string
	for round := range 5 {
		last = fmt.Sprint(alice, "-", round)
		if _, err := requestsOf(t, borough, alice).Create(t.Context(), newRequest(last), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, round)
		if _, err := borough.Client(t).TenancyV1().Namespaces().Patch(t.Context(), last, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "event", next(alice), fmt.Sprintf("ADDED %s ", last))
		wantEqual(t, "event", next(alice), fmt.Sprintf("MODIFIED %s %d", last, round))
	}
	grant(t, borough, last, "view", alice+"-friend")
	wantEqual(t, "first event of another user", next(alice+"-friend"), fmt.Sprintf("ADDED %s 4", last))
}

// TestResumedWatchOfRoleBindings continues a watch after the first of two RoleBindings that
// are created together: that of the requester, and that of a template. It must get the other.
func TestResumedWatchOfRoleBindings(t *testing.T) {
	t.Parallel()
	name := newRequester(t, borough)
	createTemplate(t, borough, newTemplate(name, func(spec *v1.NamespaceTemplateSpec) { spec.LimitRange, spec.ResourceQuota = nil, nil }))
	bindings := rights(t, borough).RoleBindings(name)
	before, err := bindings.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watchFrom := func(revision string) (next func() *rbacv1.RoleBinding) {
		t.Helper()
		w, err := bindings.Watch(t.Context(), metav1.ListOptions{ResourceVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return func() *rbacv1.RoleBinding {
			t.Helper()
			event := <-w.ResultChan()
			binding, ok := event.Object.(*rbacv1.RoleBinding)
			if !ok {
				t.Fatalf("got %v", event)
			}
			return binding
		}
	}
	next := watchFrom(before.ResourceVersion)
	request := newRequest(name)
	request.Labels = map[string]string{templateLabel: name}
	if _, err := requestsOf(t, borough, name).Create(t.Context(), request, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	first := next()
	bind(t, borough, name, newRoleBinding("last", "ClusterRole", "view", name))
	next = watchFrom(first.ResourceVersion)
	got := map[string]bool{}
	for !got["last"] {
		got[next().Name] = true
	}
	wantEqual(t, "the RoleBindings", got, map[string]bool{"admin": true, name: true, "last": true})
}

// TestNamespaceRequestUsers requests Namespaces as different kinds of users.
func TestNamespaceRequestUsers(t *testing.T) {
	t.Parallel()
	_, err := requestsOf(t, borough, "stranger").Create(t.Context(), newRequest("stranger"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("without the right: %v", err)
	}

	robot := "system:serviceaccount:ci:" + newNamespace(t, borough)
	name := strings.ReplaceAll(robot, ":", "-")
	mayRequest(t, borough, robot)
	if _, err := requestsOf(t, borough, robot).Create(t.Context(), newRequest(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding, err := rights(t, borough).RoleBindings(name).Get(t.Context(), "admin", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	account := robot[strings.LastIndex(robot, ":")+1:]
	wantEqual(t, "a service account", binding.Subjects, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ci", Name: account}})
	if _, err := clientAs(t, borough, robot).TenancyV1().Pods(name).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a service account, in its namespace: %v", err)
	}

	// The admin of the server is a user like all others.
	name = newNamespace(t, borough) + "-admin"
	if _, err := borough.Client(t).TenancyV1().NamespaceRequests().Create(t.Context(), newRequest(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if binding, err = rights(t, borough).RoleBindings(name).Get(t.Context(), "admin", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the admin", binding.Subjects, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "borough-admin"}})
}

// TestNamespaceRequestRequests sends invalid requests.
func TestNamespaceRequestRequests(t *testing.T) {
	t.Parallel()
	client := borough.HTTP(t)
	const path = api + "/namespacerequests"
	for _, tc := range []struct {
		method, path, body string
		code               int32
		message            string
	}{
		{"POST", path, `{}`, 422, "name or generateName is required"},
		{"POST", path, `{"metadata":{"name":"A"}}`, 422, `Namespace.tenancy.borough.io "A" is invalid: metadata.name`},
		{"POST", path, `{"metadata":{"name":"a.b"}}`, 422, "must not contain dots"},
		{"POST", path, `{"metadata":{"name":"kube-system"}}`, 422, `metadata.name: Invalid value: "kube-system": names that start with "kube-" are reserved`},
		{"POST", path, `{"metadata":{"generateName":"kube-"}}`, 422, "metadata.generateName: Invalid value"},
		{"POST", path, `{"metadata":{"name":"a","labels":{"x":"?"}}}`, 422, "metadata.labels"},
		{"POST", path, `{"metadata":{"name":"a","finalizers":["example.com/x"]}}`, 422, "metadata.finalizers: Forbidden"},
		{"POST", path, `{"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}`, 422, "metadata.ownerReferences: Forbidden"},
		{"POST", path, `{"metadata":{"name":"a","annotations":{"tenancy.borough.io/requester":"bob"}}}`, 422, "metadata.annotations[tenancy.borough.io/requester]: Forbidden"},
		{"POST", path + "?fieldValidation=Strict", `{"metadata":{"name":"a"},"spec":{}}`, 400, `unknown field "spec"`},
		{"GET", path, "", 405, ""},
		{"GET", path + "/a", "", 404, ""},
		{"DELETE", path + "/a", "", 404, ""},
	} {
		t.Run(fmt.Sprint(tc.method, " ", tc.path, " ", tc.body), func(t *testing.T) {
			answer := client.Do(t, tc.method, tc.path, []byte(tc.body), "Content-Type", asJSON)
			wantStatus(t, answer, int(tc.code), tc.message)
		})
	}
}

// TestRequesterIsImmutable tries to set, change and remove the requester of Namespaces.
func TestRequesterIsImmutable(t *testing.T) {
	t.Parallel()
	alice := newRequester(t, borough)
	client := borough.HTTP(t)
	if _, err := requestsOf(t, borough, alice).Create(t.Context(), newRequest(alice), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	plain, absent := newNamespace(t, borough), alice+"-absent"
	for _, tc := range []struct {
		name, method, path, contentType, body string
		code                                  int
	}{
		{"create", http.MethodPost, "", asJSON, `{"metadata":{"name":"` + absent + `","annotations":{"tenancy.borough.io/requester":"` + alice + `"}}}`, 422},
		{"create by apply", http.MethodPatch, "/" + absent + "?fieldManager=m", string(types.ApplyYAMLPatchType), `{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":"` + absent + `","annotations":{"tenancy.borough.io/requester":"` + alice + `"}}}`, 422},
		{"set", http.MethodPatch, "/" + plain, string(types.MergePatchType), `{"metadata":{"annotations":{"tenancy.borough.io/requester":"` + alice + `"}}}`, 422},
		{"change", http.MethodPatch, "/" + alice, string(types.MergePatchType), `{"metadata":{"annotations":{"tenancy.borough.io/requester":"bob"}}}`, 422},
		{"change by apply", http.MethodPatch, "/" + alice + "?fieldManager=m&force=true", string(types.ApplyYAMLPatchType), `{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":"` + alice + `","annotations":{"tenancy.borough.io/requester":"bob"}}}`, 422},
		{"change by status", http.MethodPatch, "/" + alice + "/status", string(types.MergePatchType), `{"metadata":{"annotations":{"tenancy.borough.io/requester":"bob"}}}`, 422},
		{"change by finalize", http.MethodPut, "/" + alice + "/finalize", asJSON, `{"metadata":{"name":"` + alice + `","annotations":{"tenancy.borough.io/requester":"bob"}},"spec":{"finalizers":["kubernetes"]}}`, 422},
		{"remove", http.MethodPatch, "/" + alice, string(types.JSONPatchType), `[{"op":"remove","path":"/metadata/annotations/tenancy.borough.io~1requester"}]`, 200},
		{"remove by PUT", http.MethodPut, "/" + alice, asJSON, `{"metadata":{"name":"` + alice + `"}}`, 200},
		{"remove by status", http.MethodPatch, "/" + alice + "/status", string(types.MergePatchType), `{"metadata":{"annotations":null}}`, 200},
		{"remove by finalize", http.MethodPut, "/" + alice + "/finalize", asJSON, `{"metadata":{"name":"` + alice + `"},"spec":{"finalizers":["kubernetes"]}}`, 200},
	} {
		answer := client.Do(t, tc.method, api+"/namespaces"+tc.path, []byte(tc.body), "Content-Type", tc.contentType)
		if answer.Code != tc.code || tc.code == 422 && !strings.Contains(answer.Status().Message, "requester") {
			t.Errorf("%s: got %v, want %d", tc.name, answer, tc.code)
		}
		for name, want := range map[string]string{alice: alice, plain: ""} {
			ns, err := borough.Client(t).TenancyV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := ns.Annotations[v1.RequesterAnnotation]; got != want {
				t.Fatalf("%s: the requester of %s is %q", tc.name, name, got)
			}
		}
	}
	list, err := borough.Client(t).TenancyV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(list.Items, func(ns v1.Namespace) bool { return ns.Name == absent }) {
		t.Errorf("the namespace %s exists", absent)
	}
	_, err = borough.Client(t).TenancyV1().Namespaces().List(t.Context(), metav1.ListOptions{FieldSelector: "requester=" + alice})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a list by requester: %v", err)
	}
}
