// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/test/harness"
)

// bind creates a RoleBinding.
func bind(t *testing.T, b *harness.Borough, namespace string, binding *rbacv1.RoleBinding) {
	t.Helper()
	if _, err := rights(t, b).RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestProjects reads the projects of users with all kinds of access.
func TestProjects(t *testing.T) {
	t.Parallel()
	prefix := newNamespace(t, borough)
	user, label := prefix+"-alice", "example.com/"+prefix
	namespaces := borough.Client(t).TenancyV1().Namespaces()
	want := map[string]v1.ProjectAccess{}
	for _, access := range []v1.ProjectAccess{"admin", "cluster-admin", "custom", "edit", "none", "view"} {
		name := prefix + "-" + string(access)
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: string(access)}, Annotations: map[string]string{"a": "b"}}}
		if _, err := namespaces.Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		switch access {
		case "none":
			continue
		case "custom":
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "admin"}, Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"get"}, APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"namespaces"}},
			}}
			if _, err := rights(t, borough).Roles(name).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			bind(t, borough, name, newRoleBinding("x", "Role", "admin", user)) // is not the ClusterRole
		case "admin":
			bind(t, borough, name, newRoleBinding("a", "ClusterRole", "view", user)) // the highest counts
			fallthrough
		default:
			bind(t, borough, name, newRoleBinding("x", "ClusterRole", string(access), user))
		}
		want[name] = access
	}
	want[prefix+"-cluster-admin"] = v1.ProjectAdmin

	projects := clientAs(t, borough, user).TenancyV1().Projects()
	list, err := projects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]v1.ProjectAccess{}
	for _, project := range list.Items {
		got[project.Name] = project.Status.Access
		ns, err := namespaces.Get(t.Context(), project.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ns.ManagedFields = nil
		wantEqual(t, project.Name, project, v1.Project{
			ObjectMeta: ns.ObjectMeta, Spec: v1.ProjectSpec{Finalizers: ns.Spec.Finalizers},
			Status: v1.ProjectStatus{Phase: ns.Status.Phase, Access: want[project.Name]},
		})
		one, err := projects.Get(t.Context(), project.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "get of "+project.Name, *one, project)
	}
	wantEqual(t, "list", got, want)

	http := as(t, borough, user)
	names := func(query url.Values, accept string) (names []string) {
		for {
			var list metav1.PartialObjectMetadataList
			wantAnswer(t, http.Do(t, "GET", api+"/projects?"+query.Encode(), nil, "Accept", accept), 200).JSON(t, &list)
			for _, item := range list.Items {
				names = append(names, strings.TrimPrefix(item.Name, prefix+"-"))
			}
			if list.Continue == "" {
				return names
			}
			query.Set("continue", list.Continue)
		}
	}
	const partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	all := []string{"admin", "cluster-admin", "custom", "edit", "view"}
	wantEqual(t, "pages", names(url.Values{"limit": {"2"}}, partial), all)
	wantEqual(t, "by label", names(url.Values{"labelSelector": {label + " in (edit,none)"}}, asJSON), []string{"edit"})
	wantEqual(t, "by name", names(url.Values{"fieldSelector": {"metadata.name=" + prefix + "-view"}}, asJSON), []string{"view"})
	wantEqual(t, "by phase", names(url.Values{"fieldSelector": {"status.phase=Terminating"}}, asJSON), []string(nil))
	wantStatus(t, http.Do(t, "GET", api+"/projects?fieldSelector=spec.x%3Dy", nil), 400, "field label not supported")
	if body := string(as(t, borough, "outsider").Do(t, "GET", api+"/projects", nil).Body); !strings.Contains(body, `"items":[]`) {
		t.Errorf("an empty list: %s", body)
	}

	none, absent := prefix+"-none", prefix+"-gone"
	forbidden, missing := http.Do(t, "GET", api+"/projects/"+none, nil), http.Do(t, "GET", api+"/projects/"+absent, nil)
	wantStatus(t, missing, 404, `projects.tenancy.borough.io "`+absent+`" not found`)
	wantEqual(t, "a Namespace that the user may not get", strings.ReplaceAll(string(forbidden.Body), none, absent), string(missing.Body))

	rows := rows(borough.Kubectl(t, "get", "projects", "--as="+user, "--no-headers"))
	for i := range rows {
		rows[i] = strings.Join(strings.Fields(rows[i])[:3], " ")
	}
	wantEqual(t, "rows", rows, []string{
		prefix + "-admin Active admin", prefix + "-cluster-admin Active admin", prefix + "-custom Active custom",
		prefix + "-edit Active edit", prefix + "-view Active view",
	})
	wantContains(t, borough.Kubectl(t, "get", "project", prefix+"-view", "--as="+user), "NAME", "STATUS", "ACCESS", "AGE")

	// The admin of the server has all.
	admin, err := borough.Client(t).TenancyV1().Projects().List(t.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil || len(admin.Items) != 6 || slices.ContainsFunc(admin.Items, func(p v1.Project) bool { return p.Status.Access != v1.ProjectAdmin }) {
		t.Errorf("the admin sees %+v, %v", admin, err)
	}
}

// TestProjectWatch changes a Namespace, and the access of a user, who watches.
func TestProjectWatch(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	user := ns + "-alice"
	other := newNamespace(t, borough)
	bind(t, borough, other, newRoleBinding("edit", "ClusterRole", "edit", user))
	next := streamAs(t, as(t, borough, user), api+"/projects", url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
	})
	wantEvent := func(kind watch.EventType, name string, access v1.ProjectAccess) *v1.Project {
		t.Helper()
		event := next()
		for event.Type == watch.Bookmark && kind != watch.Bookmark { // can be sent at any time
			event = next()
		}
		project := &v1.Project{}
		if err := json.Unmarshal(event.Object, project); err != nil {
			t.Fatal(err)
		}
		if event.Type != kind || project.Name != name || project.Status.Access != access || project.Kind != "Project" {
			t.Fatalf("got %s %s, want %s of %q with access %q", event.Type, event.Object, kind, name, access)
		}
		return project
	}
	bindings, namespaces := rights(t, borough).RoleBindings(ns), borough.Client(t).TenancyV1().Namespaces()
	object, err := namespaces.Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(text string) {
		t.Helper()
		if object, err = namespaces.Patch(t.Context(), ns, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	unbind := func(name string) {
		t.Helper()
		if err := bindings.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	wantVersion := func(project *v1.Project) {
		t.Helper()
		wantEqual(t, "resourceVersion", project.ResourceVersion, object.ResourceVersion)
	}

	wantEvent(watch.Added, other, v1.ProjectEdit)
	wantEqual(t, "the end of the initial events", wantEvent(watch.Bookmark, "", "").Annotations, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	bind(t, borough, ns, newRoleBinding("view", "ClusterRole", "view", user))
	wantVersion(wantEvent(watch.Added, ns, v1.ProjectView))
	granted := wantEvent(watch.Bookmark, "", "").ResourceVersion
	bind(t, borough, ns, newRoleBinding("edit", "ClusterRole", "edit", user))
	binding, err := bindings.Get(t.Context(), "edit", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "resourceVersion", wantEvent(watch.Modified, ns, v1.ProjectEdit).ResourceVersion, binding.ResourceVersion)
	wantEvent(watch.Bookmark, "", "")
	patch(`{"metadata":{"labels":{"a":"b"}}}`)
	wantVersion(wantEvent(watch.Modified, ns, v1.ProjectEdit))
	unbind("view") // changes nothing
	unbind("edit")
	wantEvent(watch.Deleted, ns, v1.ProjectEdit)
	grant(t, borough, "", "view", user) // in all Namespaces
	var sawOther, sawNS bool
	for !sawOther || !sawNS {
		event := next()
		var project v1.Project
		if err := json.Unmarshal(event.Object, &project); err != nil {
			t.Fatal(err)
		}
		sawNS = sawNS || project.Name == ns && event.Type == watch.Added && project.Status.Access == v1.ProjectView
		if project.Name == other {
			t.Errorf("the access in %s is the same, but there is %s %s", other, event.Type, event.Object)
		}
		sawOther = sawOther || event.Type == watch.Bookmark
	}
	if err := rights(t, borough).ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	// A watch that continues has the same events.
	next = streamAs(t, as(t, borough, user), api+"/projects", url.Values{"watch": {"1"}, "resourceVersion": {granted}})
	wantEqual(t, "resourceVersion", wantEvent(watch.Modified, ns, v1.ProjectEdit).ResourceVersion, binding.ResourceVersion)
	wantVersion(wantEvent(watch.Modified, ns, v1.ProjectEdit))
	wantEvent(watch.Deleted, ns, v1.ProjectEdit)
}

// TestProjectInformer checks that a handler of an informer is called when the access of its
// user changes, also if one change of a ClusterRoleBinding changes it in several Namespaces.
// The handler gets no resyncs, for which an informer takes a MODIFIED with the same
// resourceVersion.
func TestProjectInformer(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t, borough), newNamespace(t, borough)
	user := ns + "-alice"
	for _, namespace := range []string{ns, other} {
		bind(t, borough, namespace, newRoleBinding("view", "ClusterRole", "view", user))
	}
	client, err := versioned.NewForConfig(impersonate(borough.Config(t, "admin"), user))
	if err != nil {
		t.Fatal(err)
	}
	factory := externalversions.NewSharedInformerFactory(client, time.Second)
	informer := factory.Tenancy().V1().Projects().Informer()
	type access struct {
		project string
		access  v1.ProjectAccess
	}
	seen := make(chan access, 100)
	note := func(obj any) {
		if project := obj.(*v1.Project); project.Name == ns || project.Name == other {
			seen <- access{project.Name, project.Status.Access}
		}
	}
	if _, err := informer.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }}, 0); err != nil {
		t.Fatal(err)
	}
	resynced := make(chan struct{}, 1)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, obj any) {
		if old == obj {
			select {
			case resynced <- struct{}{}:
			default:
			}
		}
	}}); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	want := func(all ...access) {
		t.Helper()
		for left := all; len(left) > 0; {
			select {
			case got := <-seen:
				left = slices.DeleteFunc(slices.Clone(left), func(a access) bool { return a == got })
			case <-time.After(time.Minute):
				t.Fatalf("the handlers were not called with %v", left)
			}
		}
	}
	want(access{ns, v1.ProjectView}, access{other, v1.ProjectView})
	<-resynced // from now on, the informer distinguishes its handlers
	bind(t, borough, ns, newRoleBinding("edit", "ClusterRole", "edit", user))
	want(access{ns, v1.ProjectEdit})
	grant(t, borough, "", "admin", user)
	want(access{ns, v1.ProjectAdmin}, access{other, v1.ProjectAdmin})
}

// TestProjectsRevoked revokes the right to read projects.
func TestProjectsRevoked(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	alice := as(t, b, "alice")
	next := streamAs(t, alice, api+"/projects", url.Values{"watch": {"1"}})
	if err := rights(t, b).ClusterRoleBindings().Delete(t.Context(), "system:project-viewer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, alice.Do(t, http.MethodGet, api+"/projects", nil), http.StatusForbidden)
	event := next()
	if event.Type != watch.Error || !strings.Contains(string(event.Object), `"code":403`) {
		t.Errorf("the watch got %s %s", event.Type, event.Object)
	}
}
