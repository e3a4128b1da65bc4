// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/third_party/forked/golang/btree"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/storage/changes"
)

// TestNotifyOnce checks that a change of a Namespace is pushed once to a watch, regardless
// of how many bindings in it there are of its user.
func TestNotifyOnce(t *testing.T) {
	index := rbac.NewIndex(nil)
	user := rbac.Subject{Name: "u"}
	var bindings []rbac.Change
	for i := range 3 {
		meta := metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i)}
		bindings = append(bindings, rbac.Change{Resource: rbacv1.Resource("rolebindings"), Namespace: "a", Name: meta.Name, Object: &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "u"}, {Kind: rbacv1.UserKind, Name: "other"}},
		}})
	}
	index.Reset(1, slices.Values(bindings))
	w := newWatchers()
	q := &queue{subjects: []rbac.Subject{user}, wake: make(chan struct{}, 1)}
	w.add(q)
	for position := range int64(2) {
		w.notify(index, &change{position: 2 + position, namespaces: []string{"a"}})
	}
	if want := []item{{2, "a"}, {3, "a"}}; !slices.Equal(q.items, want) {
		t.Errorf("got %v, want %v", q.items, want)
	}
}

// roleWith returns the change of the Role r to one with a verb for Namespaces.
func roleWith(verb string) rbac.Change {
	return rbac.Change{Resource: rbacv1.Resource("roles"), Namespace: "a", Name: "r", Object: &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"namespaces"}, Verbs: []string{verb}}},
	}}
}

// bindingOf returns a RoleBinding of the Role r to users bound0, bound1 and so on.
func bindingOf(name string, users int) rbac.Change {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}}
	for i := range users {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: fmt.Sprint("bound", i)})
	}
	return rbac.Change{Resource: rbacv1.Resource("rolebindings"), Namespace: "a", Name: name, Object: binding}
}

// addWatch adds the queue of a watch of a user.
func (w *watchers) addWatch(user string) *queue {
	q := &queue{subjects: []rbac.Subject{{Name: user}}, wake: make(chan struct{}, 1)}
	w.add(q)
	return q
}

// TestTouched checks that the watches are found whose users a change of a Role concerns, if
// more subjects have bindings than watches, and if fewer have.
func TestTouched(t *testing.T) {
	const subjects = 50
	for _, others := range []int{1, 2 * subjects} {
		index := rbac.NewIndex(nil)
		index.Reset(1, slices.Values([]rbac.Change{roleWith("list"), bindingOf("b", subjects)}))
		w := newWatchers()
		bound := w.addWatch("bound7")
		var unbound []*queue
		for i := range others {
			unbound = append(unbound, w.addWatch(fmt.Sprint("other", i)))
		}
		w.notify(index, &change{position: 2, touched: index.Apply(2, []rbac.Change{roleWith("get")})})
		if want := []item{{2, "a"}}; !slices.Equal(bound.items, want) {
			t.Errorf("%d others: got %v, want %v", others, bound.items, want)
		}
		for _, q := range unbound {
			if len(q.items) > 0 {
				t.Errorf("%d others: the watch of %v has %v", others, q.subjects, q.items)
			}
		}
	}
}

// BenchmarkNotifyRole changes a Role that 200 bindings with 10,000 subjects each refer to,
// while ten users watch.
func BenchmarkNotifyRole(b *testing.B) {
	index := rbac.NewIndex(nil)
	policy := []rbac.Change{roleWith("list")}
	for i := range 200 {
		policy = append(policy, bindingOf(fmt.Sprint(i), 10_000))
	}
	index.Reset(1, slices.Values(policy))
	w := newWatchers()
	for i := range 10 {
		w.addWatch(fmt.Sprint("watching", i))
	}
	position := int64(1)
	for b.Loop() {
		position++
		w.notify(index, &change{position: position, touched: index.Apply(position, []rbac.Change{roleWith([]string{"list", "get"}[position%2])})})
	}
}

// TestEndWithoutEvents checks that a watch that is behind ends with its request, also if
// it has nothing to send.
func TestEndWithoutEvents(t *testing.T) {
	r := &watcher{View: newViews(rbac.NewIndex(nil)).Everything(), queue: &queue{}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r.sendItems(ended, []item{{2, "a"}}) {
		t.Error("a watch whose request has ended continues")
	}
}

// TestPolicyAndViewsAtOnce checks that no list is at a position before that of the index,
// whose changes are answered.
func TestPolicyAndViewsAtOnce(t *testing.T) {
	var v *Views
	applied := 0
	v = New(rbac.NewIndex(func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		applied++
		if v.mu.TryRLock() {
			defer v.mu.RUnlock()
			t.Errorf("a list can be at %d while the policy changes", v.reached)
		}
		return rules
	}))
	role := func(verb string) []rbac.Change {
		return []rbac.Change{{Resource: rbacv1.Resource("clusterroles"), Name: "r", Object: &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}}},
		}}}
	}
	v.reset(1, 1, slices.Values(role("get")), func(func(changes.Change) bool) {})
	v.apply(2, 2, role("list"), nil)
	if applied != 2 {
		t.Errorf("the policy has changed %d times", applied)
	}
}

// write makes a Namespace change at a revision: it is written, or deleted.
func write(v *Views, revision int64, name string, exists bool) {
	change := changes.Change{Name: name, Revision: revision}
	if exists {
		change.Value = []byte{}
		v.Decoded(&tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(revision)}})
	}
	v.apply(revision, revision, nil, []changes.Change{change})
}

// watchAll returns the events of a watch that begins with all Namespaces.
func watchAll(t *testing.T, v *Views) <-chan watch.Event {
	t.Helper()
	options := &metainternalversion.ListOptions{ResourceVersion: "0", SendInitialEvents: new(true), AllowWatchBookmarks: true}
	w, err := v.Everything().Watch(t.Context(), options, storage.Everything)
	if err != nil {
		t.Fatal(err)
	}
	return w.ResultChan()
}

func wantEvent(t *testing.T, events <-chan watch.Event, kind watch.EventType, name string, revision int64) {
	t.Helper()
	event := <-events
	ns, ok := event.Object.(*tenancy.Namespace)
	if !ok || event.Type != kind || ns.Name != name || ns.ResourceVersion != fmt.Sprint(revision) {
		t.Fatalf("got %+v, want %s %s at %d", event, kind, name, revision)
	}
}

func nothing[T any](func(T) bool) {}

// TestReadersWithInitialEvents checks that the Namespaces with which a watch begins are
// read while others can read, too.
func TestReadersWithInitialEvents(t *testing.T) {
	v := newViews(rbac.NewIndex(nil))
	v.reset(1, 1, nothing, nothing)
	var watching atomic.Bool
	var compared atomic.Int64
	v.namespaces.tree = btree.New(treeDegree, func(a, b named) bool {
		if watching.Load() {
			compared.Add(1)
			if v.mu.TryRLock() {
				v.mu.RUnlock()
			} else {
				t.Error("the lock is held exclusively")
			}
		}
		return a.name < b.name
	})
	for i := range int64(3) {
		write(v, 2+i, fmt.Sprint(i), true)
	}
	watching.Store(true)
	events := watchAll(t, v)
	for i := range int64(3) {
		wantEvent(t, events, watch.Added, fmt.Sprint(i), 2+i)
	}
	wantEvent(t, events, watch.Bookmark, "", 4)
	if compared.Load() == 0 {
		t.Error("nothing was read")
	}
}

// TestChangeDuringInitialEvents checks that changes are made while a watch reads the
// Namespaces with which it begins: they follow, and these are as they were before.
func TestChangeDuringInitialEvents(t *testing.T) {
	const total = initialChunk + 100
	v := newViews(rbac.NewIndex(nil))
	v.reset(1, 1, nothing, nothing)
	name := func(i int64) string { return fmt.Sprintf("n%05d", i) }
	for i := range int64(total) {
		write(v, 2+i, name(i), true)
	}
	events := watchAll(t, v)
	wantEvent(t, events, watch.Added, name(0), 2)
	// The watch is in the first chunk until these events are read.
	const last = total + 1
	write(v, last+1, name(total-1), false)
	write(v, last+2, name(total-2), true)
	write(v, last+3, name(total), true)
	for i := int64(1); i < total; i++ {
		wantEvent(t, events, watch.Added, name(i), 2+i)
	}
	wantEvent(t, events, watch.Bookmark, "", last)
	wantEvent(t, events, watch.Deleted, name(total-1), last+1)
	wantEvent(t, events, watch.Modified, name(total-2), last+2)
	wantEvent(t, events, watch.Added, name(total), last+3)
}

// TestInitialEventsLost checks that a watch whose position is no longer in the history
// before it has read anything does not send that there is nothing.
func TestInitialEventsLost(t *testing.T) {
	v := newViews(rbac.NewIndex(nil))
	v.reset(5, 5, nothing, nothing)
	r := &watcher{View: v.Everything(), queue: &queue{}, bookmarks: true, position: 4, events: make(chan watch.Event, 10)}
	if r.sendInitial(t.Context(), true) {
		t.Error("the watch continues")
	}
	if event := <-r.events; event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("got %+v, want Expired", event)
	}
}

// TestRightsLost checks that a watch whose rights at a position are no longer known is expired,
// also if they seem to be the same as before.
func TestRightsLost(t *testing.T) {
	v := newViews(rbac.NewIndex(nil))
	v.reset(6, 6, nothing, nothing)
	r := &watcher{View: v.Everything(), queue: &queue{}, bookmarks: true, position: 4, events: make(chan watch.Event, 10)}
	r.rights = r.View.rights(4)
	if r.sendPosition(t.Context(), 5, []item{{position: 5}}) {
		t.Fatal("the watch continues")
	}
	if event := <-r.events; event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("got %+v, want Expired", event)
	}
}

// TestPushPart checks that the size of a part counts the touches of its changes.
func TestPushPart(t *testing.T) {
	v := newViews(rbac.NewIndex(nil))
	for position := range int64(3) {
		v.history = append(v.history, change{position: position + 1, touched: make([]rbac.Touch, maxPart)})
	}
	pushed, more := int64(0), true
	for i, want := range []int64{1, 2, 3, 3} {
		if pushed, more = v.pushPart(&queue{}, pushed); pushed != want || more != (i < 3) {
			t.Errorf("pushed up to %d, more %v, want up to %d", pushed, more, want)
		}
	}
}
