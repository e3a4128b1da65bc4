// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/authorization/bootstrap"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

func rights(t *testing.T, b *harness.Borough) rbacclient.RbacV1Interface {
	t.Helper()
	client, err := rbacclient.NewForConfig(b.Config(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// clientAs returns a client of a user.
func clientAs(t *testing.T, b *harness.Borough, user string, groups ...string) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(impersonate(b.Config(t, "admin"), user, groups...))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newRoleBinding(name, kind, role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// TestRightsInForceWhenAnswered grants and revokes in each way that there is, and sends
// a request right after each answer.
func TestRightsInForceWhenAnswered(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	admin, user := rights(t, borough), ns+"-alice"
	pods := clientAs(t, borough, user).TenancyV1().Pods(ns)
	read := []rbacv1.PolicyRule{{APIGroups: []string{v1.GroupName}, Resources: []string{"pods"}, Verbs: []string{"list"}}}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, create, remove := t.Context(), metav1.CreateOptions{}, metav1.DeleteOptions{}
	clusterBinding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: newRoleBinding("", "ClusterRole", user, "").RoleRef, Subjects: newRoleBinding("", "", "", user).Subjects}
	label := map[string]string{"example.com/aggregate-to-" + user: "true"}
	aggregate := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user + "-all"}, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}}}}
	part := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user + "-part", Labels: label}, Rules: read}
	must(admin.Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}, create))
	must(admin.RoleBindings(ns).Create(ctx, newRoleBinding("by-role", "Role", "empty", user), create))
	must(admin.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: read}, create))
	must(admin.ClusterRoles().Create(ctx, aggregate, create))
	must(admin.RoleBindings(ns).Create(ctx, newRoleBinding("by-aggregate", "ClusterRole", aggregate.Name, user), create))
	t.Cleanup(func() {
		for _, role := range []string{user, aggregate.Name} {
			if err := admin.ClusterRoles().Delete(context.Background(), role, remove); err != nil {
				t.Error(err)
			}
		}
	})
	for name, way := range map[string]struct{ grant, revoke func() }{
		"a RoleBinding": {
			func() {
				must(admin.RoleBindings(ns).Create(ctx, newRoleBinding("x", "ClusterRole", user, user), create))
			},
			func() { must(nil, admin.RoleBindings(ns).Delete(ctx, "x", remove)) },
		},
		"a ClusterRoleBinding": {
			func() { must(admin.ClusterRoleBindings().Create(ctx, clusterBinding, create)) },
			func() { must(nil, admin.ClusterRoleBindings().Delete(ctx, user, remove)) },
		},
		"deletecollection": {
			func() {
				must(admin.RoleBindings(ns).Create(ctx, newRoleBinding("x", "ClusterRole", user, user), create))
			},
			func() {
				must(nil, admin.RoleBindings(ns).DeleteCollection(ctx, remove, metav1.ListOptions{FieldSelector: "metadata.name=x"}))
			},
		},
		"the rules of a Role": {
			func() {
				must(admin.Roles(ns).Update(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Rules: read}, metav1.UpdateOptions{}))
			},
			func() {
				must(admin.Roles(ns).Patch(ctx, "empty", types.MergePatchType, []byte(`{"rules":[]}`), metav1.PatchOptions{}))
			},
		},
		"an aggregated ClusterRole": {
			func() { must(admin.ClusterRoles().Create(ctx, part, create)) },
			func() { must(nil, admin.ClusterRoles().Delete(ctx, part.Name, remove)) },
		},
	} {
		for round := range 30 {
			way.grant()
			if _, err := pods.List(ctx, metav1.ListOptions{}); err != nil {
				t.Fatalf("%s, round %d: right after the grant: %v", name, round, err)
			}
			way.revoke()
			if _, err := pods.List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Fatalf("%s, round %d: right after the revocation: %v", name, round, err)
			}
		}
	}
}

// TestImpersonationInForceWhenAnswered grants and revokes the right to impersonate, and
// impersonates right after each answer.
func TestImpersonationInForceWhenAnswered(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	admin, user, alice := rights(t, borough), ns+"-bob", ns+"-alice"
	grant(t, borough, ns, "view", alice)
	client, err := versioned.NewForConfig(impersonate(loadKubeconfig(t, issue(t, borough, "--user="+user)), alice))
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: newRoleBinding("", "ClusterRole", "cluster-admin", "").RoleRef, Subjects: newRoleBinding("", "", "", user).Subjects}
	for round := range 10 {
		if _, err := admin.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.TenancyV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatalf("round %d: right after the grant: %v", round, err)
		}
		if err := admin.ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.TenancyV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Fatalf("round %d: right after the revocation: %v", round, err)
		}
	}
}

// TestRevocationEndsWatches revokes the right to watches of all kinds and encodings.
func TestRevocationEndsWatches(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	user := ns + "-alice"
	grant(t, borough, ns, "view", user)
	client := clientAs(t, borough, user).TenancyV1()
	options := metav1.ListOptions{}
	watches := map[string]watch.Interface{}
	for name, start := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"pods":        client.Pods(ns).Watch,
		"limitranges": client.LimitRanges(ns).Watch,
	} {
		w, err := start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		watches[name] = w
	}
	raw := as(t, borough, user)
	table := raw.Open(t, http.MethodGet, api+"/namespaces/"+ns+"/pods?watch=true", nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	defer table.Body.Close()
	// To the policy, the name of a Namespace is also its namespace.
	one := raw.Open(t, http.MethodGet, api+"/watch/namespaces/"+ns, nil)
	defer one.Body.Close()

	createPod(t, borough, ns, newPod("p"))
	if event := <-watches["pods"].ResultChan(); event.Type != watch.Added {
		t.Fatalf("got %v", event)
	}
	if err := rights(t, borough).RoleBindings(ns).Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createPod(t, borough, ns, newPod("after"))
	for name, w := range watches {
		var last watch.Event
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok && pod.Name == "after" {
				t.Errorf("%s: an event of after the revocation: %v", name, event)
			}
			last = event
		}
		status, ok := last.Object.(*metav1.Status)
		if last.Type != watch.Error || !ok || status.Code != http.StatusForbidden || !strings.Contains(status.Message, "cannot watch resource") {
			t.Errorf("%s ended with %v", name, last)
		}
	}
	for name, response := range map[string]*http.Response{"a table": table, "one Namespace": one} {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantContains(t, string(body), `"type":"ERROR"`, `"code":403`)
		if strings.Contains(string(body), `"after"`) {
			t.Errorf("%s has an event of after the revocation: %s", name, body)
		}
	}
}

// TestRightsOfTerminatingNamespace lets the user of a RoleBinding finish the
// termination of its Namespace, and then creates the Namespace again.
func TestRightsOfTerminatingNamespace(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	agent := ns + "-agent"
	grant(t, borough, ns, "edit", agent)
	roles, bindings := rights(t, borough).Roles(ns), rights(t, borough).RoleBindings(ns)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1.GroupName}, Resources: []string{"limitranges"}, Verbs: []string{"patch"}}}}
	if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bindings.Create(t.Context(), newRoleBinding("limits", "Role", "limits", agent), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limits := newLimitRange("held", item("Container", "max cpu=1"))
	limits.Finalizers = []string{"example.com/agent"}
	if _, err := borough.Client(t).TenancyV1().LimitRanges(ns).Create(t.Context(), limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createPod(t, borough, ns, newPod("held", func(p *v1.Pod) { p.Finalizers = []string{"example.com/agent"} }))
	namespaces := borough.Client(t).TenancyV1().Namespaces()
	if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := clientAs(t, borough, agent).TenancyV1().Pods(ns)
	poll.Eventually(t, func() string { // a purge has been
		pod, err := pods.Get(t.Context(), "held", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("the agent has lost its right: %v", err)
		}
		if pod.DeletionTimestamp == nil {
			return "the Pod is not being deleted"
		}
		return ""
	})
	if _, err := bindings.Create(t.Context(), newRoleBinding("late", "ClusterRole", "view", "x"), metav1.CreateOptions{}); !apierrors.HasStatusCause(err, "NamespaceTerminating") {
		t.Errorf("a RoleBinding in a terminating Namespace: %v", err)
	}
	if _, err := pods.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("the agent removes its finalizer: %v", err)
	}
	poll.Eventually(t, func() string { // a purge has deleted all that it could
		output := borough.Kubectl(t, "get", ownNamespaces, ns)
		if !strings.Contains(output, "limitranges/held (finalizer example.com/agent)") {
			return output
		}
		return ""
	})
	if _, err := clientAs(t, borough, agent).TenancyV1().LimitRanges(ns).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("the agent removes its finalizer from the LimitRange: %v", err)
	}
	poll.Eventually(t, harness.Gone(t, namespaces, ns))
	if _, err := bindings.Create(t.Context(), newRoleBinding("orphan", "ClusterRole", "view", "x"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a RoleBinding without a Namespace: %v", err)
	}
	if _, err := namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if list, err := bindings.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("the new Namespace has %d bindings, %v", len(list.Items), err)
	}
	if _, err := pods.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the agent has rights in the new Namespace: %v", err)
	}
}

// TestHeldRights checks that what waits for the finalizer of a RoleBinding is named,
// and ends with it.
func TestHeldRights(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	bindings, namespaces := rights(t, borough).RoleBindings(ns), borough.Client(t).TenancyV1().Namespaces()
	held := newRoleBinding("held", "ClusterRole", "view", "alice")
	held.Finalizers = []string{"example.com/audit"}
	if _, err := bindings.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	named := func() string {
		output := borough.Kubectl(t, "get", ownNamespaces, ns)
		if !strings.Contains(output, "rolebindings.rbac.authorization.k8s.io/held (finalizer example.com/audit)") {
			return output
		}
		return ""
	}
	poll.Eventually(t, named)
	// Another pass, which knows what remains.
	if _, err := namespaces.Patch(t.Context(), ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, named)
	if _, err := bindings.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, harness.Gone(t, namespaces, ns))
}

// TestBootstrapPolicy damages the bootstrap policy, and restarts the server.
func TestBootstrapPolicy(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, ctx := rights(t, b), t.Context()
	protect := []byte(`{"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]}`)
	extend := []byte(`[{"op":"add","path":"/rules/-","value":{"apiGroups":["example.com"],"resources":["x"],"verbs":["get"]}}]`)
	for _, err := range []error{
		client.ClusterRoles().Delete(ctx, "system:discovery", metav1.DeleteOptions{}),
		// One that cannot be replaced does not keep the server from those after it.
		client.ClusterRoleBindings().Delete(ctx, "system:discovery", metav1.DeleteOptions{}),
		second(client.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "system:discovery", Finalizers: []string{"example.com/held"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		}, metav1.CreateOptions{})),
		client.ClusterRoleBindings().Delete(ctx, "system:basic-user", metav1.DeleteOptions{}),
		second(client.ClusterRoles().Patch(ctx, "system:aggregate-to-view", types.MergePatchType, []byte(`{"rules":[]}`), metav1.PatchOptions{})),
		second(client.ClusterRoles().Patch(ctx, "system:aggregate-to-edit", types.JSONPatchType, extend, metav1.PatchOptions{})),
		second(client.ClusterRoles().Patch(ctx, "system:monitoring", types.MergePatchType, protect, metav1.PatchOptions{})),
		second(client.ClusterRoleBindings().Patch(ctx, "system:public-info-viewer", types.MergePatchType, []byte(`{"subjects":[]}`), metav1.PatchOptions{})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range bootstrap.ClusterRoles() {
		got, err := client.ClusterRoles().Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if held, missing := validation.Covers(got.Rules, want.Rules); held == (want.Name == "system:monitoring") {
			t.Errorf("%s lacks %v", want.Name, missing)
		}
	}
	for role, rules := range map[string][]rbacv1.PolicyRule{"view": bootstrap.ViewRules(), "edit": bootstrap.EditRules(), "admin": bootstrap.AdminRules()} {
		got, err := client.ClusterRoles().Get(ctx, role, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if held, missing := validation.Covers(got.Rules, rules); !held {
			t.Errorf("%s lacks %v", role, missing)
		}
	}
	for binding, want := range map[string]int{"system:basic-user": 1, "system:public-info-viewer": 2} {
		got, err := client.ClusterRoleBindings().Get(ctx, binding, metav1.GetOptions{})
		if err != nil || len(got.Subjects) != want {
			t.Errorf("%s has %d subjects, want %d: %v", binding, len(got.Subjects), want, err)
		}
	}
	edit, err := client.ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
	if err != nil || !slices.ContainsFunc(edit.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.APIGroups, []string{"example.com"}) }) {
		t.Errorf("edit does not have the rule that was added: %v, %v", edit.Rules, err)
	}
}

func second[T any](_ T, err error) error { return err }
