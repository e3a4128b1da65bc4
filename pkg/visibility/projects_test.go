// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/visibility"
)

func (f *fixture) projects(t testing.TB, name string, groups ...string) *visibility.Projects {
	t.Helper()
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: groups})
	projects, err := f.views.Projects(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return projects
}

// access returns the access of a user to a Namespace, as is obvious from the
// definition, and whether the user sees it.
func (s state) access(u, name string) (tenancy.ProjectAccess, bool) {
	if !s.sees(u, name) {
		return "", false
	}
	levels := []tenancy.ProjectAccess{tenancy.ProjectAdmin, tenancy.ProjectEdit, tenancy.ProjectView}
	highest := len(levels)
	for _, obj := range s {
		var ref rbacv1.RoleRef
		var subjects []rbacv1.Subject
		switch b := obj.(type) {
		case *rbacv1.RoleBinding:
			if b.Namespace != name {
				continue
			}
			ref, subjects = b.RoleRef, b.Subjects
		case *rbacv1.ClusterRoleBinding:
			ref, subjects = b.RoleRef, b.Subjects
		}
		_, exists := s[keyOf(newRole(ref.Name, nil))]
		if !exists || ref.Kind != "ClusterRole" || !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Name == u }) {
			continue
		}
		level := tenancy.ProjectAccess(ref.Name)
		if ref.Name == "cluster-admin" {
			level = tenancy.ProjectAdmin
		}
		if i := slices.Index(levels, level); i >= 0 {
			highest = min(highest, i)
		}
	}
	return append(levels, tenancy.ProjectCustom)[highest], true
}

// seen is what a user sees of a Namespace.
type seen struct {
	version string
	access  tenancy.ProjectAccess
}

func (s state) projects(u string) map[string]seen {
	projects := map[string]seen{}
	for _, obj := range s {
		if ns, ok := obj.(*v1.Namespace); ok {
			if access, sees := s.access(u, ns.Name); sees {
				projects[ns.Name] = seen{ns.ResourceVersion, access}
			}
		}
	}
	return projects
}

type projectEvent struct {
	kind, name string
	seen
}

// TestRandomAccess makes random changes of Namespaces and of the access of users, and
// compares lists at all revisions, and watches from all revisions, with the definition.
func TestRandomAccess(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	users := []string{"u", "v"}
	role := func() string { return pick("view", "edit", "admin", "cluster-admin", "other") }
	random := func() metav1.Object {
		switch r.IntN(8) {
		case 0, 1:
			return newNamespace(pick("a", "b", "c"))
		case 2:
			return newRole(role(), []string{pick("get", "get", "get", "list", "create")})
		case 3:
			return bind("", pick("x", "y"), role(), pick(users...))
		case 4:
			binding := bind(pick("a", "b", "c"), pick("x", "y"), role(), pick(users...)).(*rbacv1.RoleBinding)
			binding.RoleRef.Kind = "Role" // that does not exist
			return binding
		}
		return bind(pick("a", "b", "c"), pick("x", "y"), role(), pick(users...))
	}

	f := newFixture(t)
	first := f.put(t, newNamespace("a"))
	now := state{keyOf(newNamespace("a")): withRevision(newNamespace("a"), first)}
	states := map[int64]state{first: maps.Clone(now)}
	f.run(t)
	last := first
	for range *steps {
		obj := random()
		key := keyOf(obj)
		if _, exists := now[key]; exists && r.IntN(3) == 0 {
			last = f.write(t, nil, objects(obj))
			delete(now, key)
		} else {
			last = f.put(t, obj)
			now[key] = withRevision(obj, last)
		}
		states[last] = maps.Clone(now)
	}

	for _, u := range users {
		projects := f.projects(t, u)
		for revision := first; revision <= last; revision++ {
			options := &metainternalversion.ListOptions{ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
			list, err := projects.List(t.Context(), options, everything())
			if err != nil {
				t.Fatal(err)
			}
			got, want := map[string]seen{}, states[revision].projects(u)
			for _, p := range list.Items {
				got[p.Name] = seen{p.ResourceVersion, p.Status.Access}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d: %s sees %v at %d, want %v", seed, u, got, revision, want)
			}
		}
		for name := range map[string]bool{"a": true, "b": true, "c": true} {
			got, err := projects.Get(t.Context(), name, &metav1.GetOptions{})
			want, sees := now.projects(u)[name]
			if sees != (err == nil) || err != nil && !apierrors.IsNotFound(err) || sees && (seen{got.ResourceVersion, got.Status.Access}) != want {
				t.Errorf("seed %d: %s gets %v, %v of %s, want %v", seed, u, got, err, name, want)
			}
		}
		for range *steps / 20 {
			from := first + r.Int64N(last-first)
			compareWatch(t, projects, u, states, from, last)
		}
	}
}

// compareWatch watches from a revision, and compares the events until another one.
func compareWatch(t *testing.T, projects *visibility.Projects, u string, states map[int64]state, from, to int64) {
	t.Helper()
	var want []projectEvent
	held := map[string]string{} // the versions that the client has
	for name, is := range states[from].projects(u) {
		held[name] = is.version
	}
	for revision := from + 1; revision <= to; revision++ {
		before, after := states[revision-1].projects(u), states[revision].projects(u)
		bookmark, byRights := false, false
		var events, own, last []projectEvent
		for _, name := range []string{"a", "b", "c"} {
			was, wasSeen := before[name]
			is, isSeen := after[name]
			switch {
			case was == is:
				continue
			case !isSeen:
				was.version = fmt.Sprint(revision - 1)
				events, byRights = append(events, projectEvent{"DELETED", name, was}), true
				continue
			}
			event := projectEvent{"ADDED", name, is}
			if wasSeen {
				event.kind = "MODIFIED"
			}
			if is.version == fmt.Sprint(revision) {
				own = append(own, event)
				continue
			}
			bookmark = true
			if byRights = wasSeen; byRights { // only the access changes
				event.version = fmt.Sprint(revision - 1)
				if held[name] == event.version { // the client needs another one
					last = append(last, event)
					continue
				}
			}
			events = append(events, event)
		}
		if events = append(events, last...); len(last) > 0 {
			byRights = true
		}
		if n := len(events); byRights && len(own) == 0 {
			events[n-1].version = fmt.Sprint(revision)
		}
		want = slices.Concat(want, events, own)
		for _, event := range slices.Concat(events, own) {
			if event.kind == "MODIFIED" && event.version == held[event.name] {
				t.Fatalf("%v at %d has the version that the client has", event, revision)
			}
			held[event.name] = event.version
		}
		if bookmark {
			want = append(want, projectEvent{"BOOKMARK", "", seen{fmt.Sprint(revision), ""}})
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := projects.Watch(ctx, &metainternalversion.ListOptions{Watch: true, ResourceVersion: fmt.Sprint(from), AllowWatchBookmarks: true}, everything())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for i := range want {
		event, ok := <-w.ResultChan()
		p, isProject := event.Object.(*tenancy.Project)
		if !ok || !isProject {
			t.Fatalf("the watch of %s from %d has ended: %v", u, from, event.Object)
		}
		if got := (projectEvent{string(event.Type), p.Name, seen{p.ResourceVersion, p.Status.Access}}); got != want[i] {
			t.Fatalf("event %d of %s from %d is %v, want %v", i, u, from, got, want[i])
		}
	}
}

// TestProjectsOfAll checks that members of system:masters see all Namespaces, without
// any binding.
func TestProjectsOfAll(t *testing.T) {
	f := newFixture(t)
	f.put(t, newNamespace("a"))
	f.run(t)
	projects := f.projects(t, "root", user.SystemPrivilegedGroup)
	w, err := projects.Watch(t.Context(), &metainternalversion.ListOptions{Watch: true}, everything())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.put(t, newNamespace("b"))
	for _, name := range []string{"a", "b"} {
		event := <-w.ResultChan()
		if p, ok := event.Object.(*tenancy.Project); !ok || event.Type != apiwatch.Added || p.Name != name || p.Status.Access != tenancy.ProjectAdmin {
			t.Errorf("got %v, want %s", event, name)
		}
	}
	list, err := projects.List(t.Context(), &metainternalversion.ListOptions{}, everything())
	if err != nil || len(list.Items) != 2 || list.Items[1].Status.Access != tenancy.ProjectAdmin {
		t.Errorf("got %v, %v", list, err)
	}
	if p, err := projects.Get(t.Context(), "b", &metav1.GetOptions{}); err != nil || p.Status.Access != tenancy.ProjectAdmin {
		t.Errorf("got %v, %v", p, err)
	}
}
