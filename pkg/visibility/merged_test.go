// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/pkg/visibility"
)

// newMergedFixture returns an etcd with views by a policy that is not in it.
func newMergedFixture(t testing.TB) (*fixture, *visibility.Merged) {
	codecs := serializer.NewCodecFactory(apiserver.NewScheme())
	f := &fixture{
		client: storagetest.StartEmbedded(t).Client(),
		codec:  codecs.LegacyCodec(v1.SchemeGroupVersion, rbacv1.SchemeGroupVersion),
	}
	merged := newMerged(f)
	f.views = merged.Views
	return f, merged
}

func newMerged(f *fixture) *visibility.Merged {
	merged := visibility.NewMerged(rbac.NewIndex(nil))
	source := changes.Source{
		BeginKey: "/registry/begin",
		Connect:  func() (*clientv3.Client, func(), error) { return f.client, func() {}, nil },
	}
	for _, gr := range visibility.MergedResources() {
		source.Resources = append(source.Resources, stored.Resource{
			GroupResource: gr, Prefix: prefixOf(gr), Codec: f.codec, Transformer: identity.NewEncryptCheckTransformer(),
		})
	}
	merged.Feed().SetSource(source)
	return merged
}

// policyChange returns the change that sets or deletes an object of the policy.
func policyChange(obj metav1.Object, deleted bool) rbac.Change {
	change := rbac.Change{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	change.Resource = map[string]schema.GroupResource{
		"*v1.RoleBinding": rbacv1.Resource("rolebindings"), "*v1.ClusterRoleBinding": rbacv1.Resource("clusterrolebindings"), "*v1.ClusterRole": rbacv1.Resource("clusterroles"),
	}[fmt.Sprintf("%T", obj)]
	if !deleted {
		change.Object = obj.(runtime.Object)
	}
	return change
}

// client is what a client that watches projects has in its cache.
type client struct {
	projects map[string]seen
	version  string
	watch    apiwatch.Interface
}

// list begins with a list.
func (c *client) list(t *testing.T, projects *visibility.Projects) {
	t.Helper()
	list, err := projects.List(t.Context(), &metainternalversion.ListOptions{}, everything())
	if err != nil {
		t.Fatal(err)
	}
	c.projects, c.version = map[string]seen{}, list.ResourceVersion
	for _, p := range list.Items {
		c.projects[p.Name] = seen{p.ResourceVersion, p.Status.Access}
	}
}

// start begins a watch where the client is. It returns the error with which the watch
// begins, if it does.
func (c *client) start(ctx context.Context, projects *visibility.Projects) error {
	var err error
	options := &metainternalversion.ListOptions{Watch: true, ResourceVersion: c.version, AllowWatchBookmarks: true}
	if c.watch, err = projects.Watch(ctx, options, everything()); err != nil {
		return err
	}
	select {
	case event, ok := <-c.watch.ResultChan():
		if !ok || event.Type == apiwatch.Error {
			return apierrors.FromObject(event.Object)
		}
		c.apply(event)
	default: // an error would be there
	}
	return nil
}

// apply makes the change of an event.
func (c *client) apply(event apiwatch.Event) {
	p := event.Object.(*tenancy.Project)
	c.version = p.ResourceVersion
	switch event.Type {
	case apiwatch.Added, apiwatch.Modified:
		c.projects[p.Name] = seen{p.ResourceVersion, p.Status.Access}
	case apiwatch.Deleted:
		delete(c.projects, p.Name)
	}
}

// await reads events until the client has what the user sees.
func (c *client) await(t *testing.T, want map[string]seen) {
	t.Helper()
	for !maps.Equal(c.projects, want) {
		select {
		case event, ok := <-c.watch.ResultChan():
			if !ok || event.Type == apiwatch.Error {
				t.Fatalf("the watch has ended: %v", event.Object)
			}
			c.apply(event)
		case <-time.After(time.Minute):
			t.Fatalf("the watch has sent %v, want %v", c.projects, want)
		}
	}
}

// TestMergedMissesNothing makes random changes of Namespaces, and of a policy that is not
// in their order. A client that often interrupts its watch has everything in the end.
func TestMergedMissesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	f, merged := newMergedFixture(t)
	now := state{}
	set := func(obj metav1.Object, deleted bool) {
		key := keyOf(obj)
		if ns, ok := obj.(*v1.Namespace); ok {
			if deleted {
				f.write(t, nil, objects(ns))
			} else {
				obj = withRevision(ns, f.put(t, ns))
			}
		} else {
			merged.SetPolicy(policyChange(obj, deleted))
		}
		if deleted {
			delete(now, key)
		} else {
			now[key] = obj
		}
	}
	for _, role := range []string{"view", "edit", "admin", "other"} {
		set(newRole(role, []string{"get"}), false)
	}
	set(newNamespace("a"), false)
	set(bind("a", "x", "view", "u"), false)
	f.run(t)
	random := func() metav1.Object {
		switch r.IntN(6) {
		case 0, 1:
			return newNamespace(pick("a", "b", "c"))
		case 2:
			return bind("", "x", pick("view", "admin", "other"), pick("u", "v"))
		}
		return bind(pick("a", "b", "c"), pick("x", "y"), pick("view", "edit", "other"), pick("u", "v"))
	}

	projects := f.projects(t, "u")
	c := &client{}
	c.list(t, projects)
	lists := 0
	for i := range *steps {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.start(ctx, projects)
		if apierrors.IsResourceExpired(err) {
			// It was interrupted behind an ADDED or MODIFIED of a Namespace that has not
			// changed since the start, and before the bookmark that follows.
			lists++
			c.list(t, projects)
			err = c.start(ctx, projects)
		}
		if err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, i, err)
		}
		for range r.IntN(4) {
			obj := random()
			_, exists := now[keyOf(obj)]
			set(obj, exists && r.IntN(3) == 0)
		}
		if r.IntN(2) == 0 { // otherwise the watch ends with events that were not read
			c.await(t, now.projects("u"))
		}
		cancel()
		c.watch.Stop()
	}
	if err := c.start(t.Context(), projects); err != nil {
		t.Fatal(err)
	}
	defer c.watch.Stop()
	c.await(t, now.projects("u"))
	if lists > *steps/10 {
		t.Errorf("seed %d: the client had to list %d times", seed, lists)
	}
}

// TestMergedAnotherServer continues a watch on a server that has started after a change
// of the policy, while no Namespace has changed.
func TestMergedAnotherServer(t *testing.T) {
	f, merged := newMergedFixture(t)
	f.put(t, newNamespace("a"))
	if _, err := f.views.Projects(t.Context()); err == nil {
		t.Error("projects can be read without a user")
	}
	merged.SetPolicy(policyChange(newRole("view", []string{"get"}), false))
	f.run(t)
	list, err := f.projects(t, "u").List(t.Context(), &metainternalversion.ListOptions{}, everything())
	if err != nil || len(list.Items) != 0 {
		t.Fatalf("got %v, %v", list, err)
	}

	second := newMerged(f)
	f.views = second.Views
	second.SetPolicy(policyChange(newRole("view", []string{"get"}), false))
	second.SetPolicy(policyChange(bind("a", "x", "view", "u"), false))
	f.run(t)
	projects := f.projects(t, "u")
	options := &metainternalversion.ListOptions{Watch: true, ResourceVersion: list.ResourceVersion}
	if err := watchError(t.Context(), t, projects, *options); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before the start: %v", err)
	}
	list, err = projects.List(t.Context(), &metainternalversion.ListOptions{}, everything())
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("got %v, %v", list, err)
	}
	options.ResourceVersion = list.ResourceVersion
	w, err := projects.Watch(t.Context(), options, everything())
	if err != nil {
		t.Fatalf("a watch of what the server has listed: %v", err)
	}
	defer w.Stop()
	second.SetPolicy(policyChange(bind("a", "x", "view", "u"), true))
	if event := <-w.ResultChan(); event.Type != apiwatch.Deleted {
		t.Errorf("got %v", event)
	}
}

// TestMergedPages lists projects in pages, after the policy has changed and no Namespace
// since: all pages are by the policy as it is.
func TestMergedPages(t *testing.T) {
	f, merged := newMergedFixture(t)
	var want []string
	for i := range 9 {
		ns := newNamespace(fmt.Sprint("n", i))
		f.put(t, ns)
		if i < 6 {
			want = append(want, ns.Name)
		}
	}
	f.run(t)
	merged.SetPolicy(policyChange(newRole("view", []string{"get"}), false))
	for _, name := range want {
		merged.SetPolicy(policyChange(bind(name, "x", "view", "u"), false))
	}
	late := func() { // a grant between two pages, which is at the same revision
		want = append(want, "n6", "n7", "n8")
		for _, name := range want[6:] {
			merged.SetPolicy(policyChange(bind(name, "x", "view", "u"), false))
		}
	}
	var got []string
	for page := (metav1.ListMeta{}); len(got) == 0 || page.Continue != ""; {
		list, err := f.projects(t, "u").List(t.Context(), &metainternalversion.ListOptions{Limit: 2, Continue: page.Continue}, everything())
		if err != nil {
			t.Fatal(err)
		}
		if rest := list.RemainingItemCount; rest != nil && *rest < 1 {
			t.Errorf("%d remain, and the list continues", *rest)
		}
		if len(got) == 2 {
			late()
		}
		for _, project := range list.Items {
			got = append(got, project.Name)
		}
		page = list.ListMeta
	}
	wantNames(t, got, want...)
}
