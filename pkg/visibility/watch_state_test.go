// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// clusterRole returns the change of a ClusterRole to one with the right to get Namespaces.
func clusterRole(name string) rbac.Change {
	return rbac.Change{Resource: rbacv1.Resource("clusterroles"), Name: name, Object: &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}},
	}}
}

// roleFor returns the change of the ClusterRole named to one with the right to get Namespaces by
// their names.
func roleFor(names ...string) rbac.Change {
	change := clusterRole("named")
	change.Object.(*rbacv1.ClusterRole).Rules[0].ResourceNames = names
	return change
}

// boundTo returns the change of a binding to one of a ClusterRole to the user u.
func boundTo(namespace, name, role string) rbac.Change {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "u"}}
	if namespace == "" {
		return rbac.Change{Resource: rbacv1.Resource("clusterrolebindings"), Name: name, Object: &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}}
	}
	return rbac.Change{Resource: rbacv1.Resource("rolebindings"), Namespace: namespace, Name: name, Object: &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}}
}

// TestNewestAccess checks that a Project that a watch has sent with the revision of a change
// of access is the last of those that the next revision changes: with the one before, which
// the others get, it would be as the client has it.
func TestNewestAccess(t *testing.T) {
	v := newViews(rbac.NewIndex(nil))
	v.reset(1, 1, slices.Values([]rbac.Change{clusterRole("view"), clusterRole("edit"), clusterRole("admin"), boundTo("a", "x", "view"), boundTo("b", "x", "view")}), nothing)
	write(v, 2, "a", true)
	write(v, 3, "b", true)
	view := v.Of(&user.DefaultInfo{Name: "u"})
	view.asProjects = true
	w, err := view.Watch(t.Context(), &metainternalversion.ListOptions{ResourceVersion: "0", SendInitialEvents: new(false)}, storage.Everything)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	v.apply(4, 4, []rbac.Change{boundTo("a", "y", "edit")}, nil)
	v.apply(5, 5, []rbac.Change{boundTo("", "z", "admin")}, nil)
	var got []string
	for range 3 {
		p := (<-w.ResultChan()).Object.(*tenancy.Project)
		got = append(got, fmt.Sprint(p.Name, p.ResourceVersion, p.Status.Access))
	}
	if want := []string{"a4edit", "b4admin", "a5admin"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestBookmarkWithoutEvents checks that the bookmarks of a watch that has nothing to send
// follow the revision that is reached.
func TestBookmarkWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newViews(rbac.NewIndex(nil))
		v.reset(1, 1, nothing, nothing)
		w, err := v.Of(&user.DefaultInfo{Name: "u"}).Watch(t.Context(), &metainternalversion.ListOptions{ResourceVersion: "0", AllowWatchBookmarks: true}, storage.Everything)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		synctest.Wait()
		write(v, 2, "a", true) // which the user does not see
		v.Advance(7)
		time.Sleep(bookmarkInterval)
		wantEvent(t, w.ResultChan(), watch.Bookmark, "", 7)
	})
}

// TestStoppedWatch checks that nothing is kept for a watch that has ended, also if its user
// has lost rights before.
func TestStoppedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newViews(rbac.NewIndex(nil))
		v.reset(1, 1, slices.Values([]rbac.Change{clusterRole("view"), roleFor("a", "b"), boundTo("", "x", "view"), boundTo("", "y", "named"), boundTo("a", "x", "view")}), nothing)
		w, err := v.Of(&user.DefaultInfo{Name: "u"}).Watch(t.Context(), &metainternalversion.ListOptions{ResourceVersion: "0"}, storage.Everything)
		if err != nil {
			t.Fatal(err)
		}
		v.apply(2, 2, []rbac.Change{roleFor("b")}, nil)
		w.Stop()
		synctest.Wait()
		if kept := v.watchers; len(kept.all)+len(kept.bySubject)+len(kept.seeingAll)+len(kept.byName) > 0 {
			t.Errorf("kept %+v", kept)
		}
	})
}

// hooked is a context that calls a function when it is first asked whether it has ended.
type hooked struct {
	context.Context
	hook func()
}

func (h *hooked) Err() error {
	if hook := h.hook; hook != nil {
		h.hook = nil
		hook()
	}
	return h.Context.Err()
}

// TestHistoryLostWhileWatchBegins checks that a watch is expired if everything is read again
// after it has found its position in the history, and before it is among those that expire.
func TestHistoryLostWhileWatchBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newViews(rbac.NewIndex(nil))
		v.reset(1, 1, nothing, nothing)
		write(v, 2, "a", true)
		ctx := &hooked{t.Context(), func() { v.reset(9, 9, nothing, nothing) }}
		w, err := v.Everything().Watch(ctx, &metainternalversion.ListOptions{ResourceVersion: "0", SendInitialEvents: new(false)}, storage.Everything)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		select {
		case event := <-w.ResultChan():
			if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
				t.Errorf("got %+v, want Expired", event)
			}
		case <-time.After(time.Second):
			t.Error("the watch continues")
		}
	})
}

// TestRightsSinceBegin checks that a watch that begins in the history has the changes of a
// Namespace to which a ClusterRoleBinding after that position gives the right.
func TestRightsSinceBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newViews(rbac.NewIndex(nil))
		v.reset(1, 1, slices.Values([]rbac.Change{clusterRole("view")}), nothing)
		write(v, 2, "a", true)
		ctx := &hooked{t.Context(), func() { v.apply(3, 3, []rbac.Change{boundTo("", "x", "view")}, nil) }}
		w, err := v.Of(&user.DefaultInfo{Name: "u"}).Watch(ctx, &metainternalversion.ListOptions{ResourceVersion: "0", SendInitialEvents: new(false)}, storage.Everything)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		wantEvent(t, w.ResultChan(), watch.Added, "a", 2)
		write(v, 4, "a", true)
		synctest.Wait()
		select {
		case event := <-w.ResultChan():
			if event.Type != watch.Modified {
				t.Errorf("got %+v, want MODIFIED", event)
			}
		default:
			t.Error("the watch misses a change")
		}
	})
}

// TestMergedResetAfterRevocation checks that a right that was revoked does not come back when
// everything is read again, because etcd has compacted what follows.
func TestMergedResetAfterRevocation(t *testing.T) {
	m := NewMerged(rbac.NewIndex(nil))
	m.SetPolicy(clusterRole("view"))
	m.SetPolicy(boundTo("", "x", "view"))
	u := m.Of(&user.DefaultInfo{Name: "u"})
	mergedSink{m}.Reset(5, nothing)
	if !u.seesAll() {
		t.Fatal("the right is missing")
	}
	revoked := boundTo("", "x", "view")
	revoked.Object = nil
	m.SetPolicy(revoked)
	mergedSink{m}.Reset(9, nothing)
	if u.seesAll() {
		t.Error("the right is back")
	}
}
