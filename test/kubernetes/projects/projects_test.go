// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package projects tests projects in a cluster, whose RBAC decides which Namespaces a
// user may get.
package projects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyclient "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

var (
	cluster *testcluster.Cluster
	borough *testcluster.Borough
)

func TestMain(m *testing.M) { harness.Main(m, run) }

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if cluster, err = testcluster.Start(ctx, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	options := testcluster.BoroughOptions{Etcd: cluster.Etcd, ServerFlags: []string{"--etcd-prefix=/borough", "--serve-projects"}}
	if borough, err = cluster.Deploy(ctx, options); err != nil {
		return 0, err
	}
	defer func() {
		if code != 0 || err != nil {
			fmt.Fprintln(os.Stderr, borough.Logs())
		}
		err = errors.Join(err, borough.Stop())
	}()
	return m.Run(), nil
}

// projectsOf returns the client of a user, whose requests go through kube-apiserver.
func projectsOf(t *testing.T, user string) tenancyclient.ProjectInterface {
	t.Helper()
	config, err := cluster.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.TenancyV1().Projects()
}

// newNamespace creates a Namespace and the namespace of the cluster in which rights to it
// are granted.
func newNamespace(t *testing.T, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	if _, err := cluster.Client(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func grant(t *testing.T, namespace, role, user string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := cluster.Client(t).RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func revoke(t *testing.T, namespace, role string) {
	t.Helper()
	if err := cluster.Client(t).RbacV1().RoleBindings(namespace).Delete(t.Context(), role, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// cache is what a client that watches has.
type cache struct {
	projects tenancyclient.ProjectInterface
	access   map[string]v1.ProjectAccess
	version  string
	watch    watch.Interface
}

// list fills the cache.
func (c *cache) list(t *testing.T) {
	t.Helper()
	list, err := c.projects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.access, c.version = map[string]v1.ProjectAccess{}, list.ResourceVersion
	for _, p := range list.Items {
		c.access[p.Name] = p.Status.Access
	}
}

// start watches from where the cache is.
func (c *cache) start(t *testing.T) {
	t.Helper()
	var err error
	if c.watch, err = c.projects.Watch(t.Context(), metav1.ListOptions{ResourceVersion: c.version, AllowWatchBookmarks: true}); err != nil {
		t.Fatal(err)
	}
}

// await reads events until the cache has what is wanted. A bookmark follows what a grant
// has added or changed.
func (c *cache) await(t *testing.T, want map[string]v1.ProjectAccess) {
	t.Helper()
	for granted := false; granted || !maps.Equal(c.access, want); {
		event, ok := <-c.watch.ResultChan()
		project, isProject := event.Object.(*v1.Project)
		if !ok || !isProject {
			t.Fatalf("the watch has ended with %v, and the client has %v", event.Object, c.access)
		}
		c.version = project.ResourceVersion
		granted = event.Type == watch.Added || event.Type == watch.Modified
		switch event.Type {
		case watch.Added, watch.Modified:
			c.access[project.Name] = project.Status.Access
		case watch.Deleted:
			delete(c.access, project.Name)
		}
	}
}

// TestProjects follows the rights that RBAC of the cluster gives a user.
func TestProjects(t *testing.T) {
	alice := &cache{projects: projectsOf(t, "alice")}
	if _, err := alice.projects.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("without the ClusterRole: %v", err)
	}
	// The server may not read the policy yet, not even to show an administrator all.
	answer := harness.NewHTTP(t, cluster.AdminConfig()).Do(t, http.MethodGet, "/apis/tenancy.borough.io/v1/projects", nil)
	if answer.Code != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || !strings.Contains(string(answer.Body), "the RBAC objects have not been read yet") {
		t.Errorf("before the policy is read: %v", answer)
	}
	kubectl := cluster.Kubectl(t)
	for _, name := range []string{"projects/rbac.yaml", "tenant-roles/roles.yaml"} {
		kubectl.Run(t, "apply", "--filename="+filepath.Join(harness.Root, "artifacts", "deploy", "components", name))
	}
	newNamespace(t, "team-a")
	newNamespace(t, "team-b")
	// Until the server has read the policy, and the cluster has aggregated the roles.
	grant(t, "team-a", "view", "alice")
	poll.Eventually(t, func() string {
		list, err := alice.projects.List(t.Context(), metav1.ListOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return "the right to read projects is not in force yet"
		case apierrors.IsServiceUnavailable(err):
			return err.Error()
		case err != nil:
			t.Fatal(err)
		case len(list.Items) == 0:
			return "the cluster has not aggregated its roles yet"
		}
		return ""
	})
	alice.list(t)
	if want := map[string]v1.ProjectAccess{"team-a": "view"}; !maps.Equal(alice.access, want) {
		t.Errorf("alice sees %v, want %v", alice.access, want)
	}
	alice.start(t)
	outsider, err := projectsOf(t, "outsider").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(outsider.Items) != 0 {
		t.Errorf("an outsider sees %v, %v", outsider, err)
	}
	admin, err := cluster.BoroughClient(t).TenancyV1().Projects().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(admin.Items) < 2 || slices.ContainsFunc(admin.Items, func(p v1.Project) bool { return p.Status.Access != v1.ProjectAdmin }) {
		t.Errorf("the admin of the cluster sees %v, %v", admin, err)
	}
	if p, err := alice.projects.Get(t.Context(), "team-a", metav1.GetOptions{}); err != nil || p.Status.Access != v1.ProjectView {
		t.Errorf("got %v, %v", p, err)
	}
	for _, name := range []string{"team-b", "absent"} {
		if _, err := alice.projects.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get of %s: %v", name, err)
		}
	}

	grant(t, "team-b", "edit", "alice")
	alice.await(t, map[string]v1.ProjectAccess{"team-a": "view", "team-b": "edit"})
	grant(t, "team-a", "admin", "alice")
	alice.await(t, map[string]v1.ProjectAccess{"team-a": "admin", "team-b": "edit"})
	revoke(t, "team-b", "edit")
	alice.await(t, map[string]v1.ProjectAccess{"team-a": "admin"})

	// A watch that is interrupted misses nothing, also if no Namespace changes.
	other := &cache{projects: alice.projects}
	other.list(t)
	other.start(t)
	for i := range 5 {
		alice.watch.Stop()
		if i%2 == 0 {
			grant(t, "team-b", "view", "alice")
			other.await(t, map[string]v1.ProjectAccess{"team-a": "admin", "team-b": "view"}) // the server has seen it
			alice.start(t)
			alice.await(t, map[string]v1.ProjectAccess{"team-a": "admin", "team-b": "view"})
			continue
		}
		revoke(t, "team-b", "view")
		other.await(t, map[string]v1.ProjectAccess{"team-a": "admin"})
		alice.start(t)
		alice.await(t, map[string]v1.ProjectAccess{"team-a": "admin"})
	}

	// A server that starts later does not know what an earlier one has sent.
	alice.watch.Stop()
	other.watch.Stop()
	server := borough.Servers[0]
	if err := server.Process.Stop(); err != nil {
		t.Fatal(err)
	}
	revoke(t, "team-b", "view")
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		w, err := alice.projects.Watch(t.Context(), metav1.ListOptions{ResourceVersion: alice.version})
		if err == nil {
			event := <-w.ResultChan()
			w.Stop()
			err = apierrors.FromObject(event.Object)
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return fmt.Sprintf("the watch from before: %v, want Expired", err)
		}
		return ""
	})
	alice.list(t)
	if want := map[string]v1.ProjectAccess{"team-a": "admin"}; !maps.Equal(alice.access, want) {
		t.Errorf("alice sees %v, want %v", alice.access, want)
	}
	alice.start(t)
	defer alice.watch.Stop()
	revoke(t, "team-a", "admin")
	alice.await(t, map[string]v1.ProjectAccess{"team-a": "view"})
}
