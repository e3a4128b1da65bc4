// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
)

var steps = flag.Int("steps", 600, "changes that TestRandomHistory makes")

// state is all objects at a revision, by key.
type state map[string]metav1.Object

// rulesOf returns the rules of a ClusterRole at the state, which may aggregate others.
func (s state) rulesOf(name string) (rules []rbacv1.PolicyRule) {
	role, ok := s[keyOf(newRole(name, nil))].(*rbacv1.ClusterRole)
	switch {
	case !ok:
		return nil
	case role.AggregationRule == nil:
		return role.Rules
	}
	for _, obj := range s {
		if other, ok := obj.(*rbacv1.ClusterRole); ok && other.AggregationRule == nil && other.Labels["aggregate"] == "true" {
			rules = append(rules, other.Rules...)
		}
	}
	return rules
}

// sees reports whether a user may get a Namespace, as is obvious from the definition.
func (s state) sees(u, name string) bool {
	for _, obj := range s {
		var role string
		var subjects []rbacv1.Subject
		verbs := []string{"get"}
		switch b := obj.(type) {
		case *rbacv1.RoleBinding:
			if b.Namespace != name || b.RoleRef.Kind != "ClusterRole" { // there are no Roles
				continue
			}
			role, subjects = b.RoleRef.Name, b.Subjects
		case *rbacv1.ClusterRoleBinding:
			role, subjects = b.RoleRef.Name, b.Subjects
			verbs = append(verbs, "list", "watch")
		}
		if !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.UserKind && s.Name == u || s.Kind == rbacv1.GroupKind && s.Name == "everyone"
		}) {
			continue
		}
		for _, rule := range s.rulesOf(role) {
			for _, verb := range verbs {
				if slices.Contains(rule.Verbs, verb) &&
					(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name)) {
					return true
				}
			}
		}
	}
	return false
}

// visible returns the Namespaces that a user sees and a predicate selects, by name.
func (s state) visible(u string, selects func(*v1.Namespace) bool) map[string]*v1.Namespace {
	visible := map[string]*v1.Namespace{}
	for _, obj := range s {
		if ns, ok := obj.(*v1.Namespace); ok && selects(ns) && s.sees(u, ns.Name) {
			visible[ns.Name] = ns
		}
	}
	return visible
}

// selection is a predicate in two forms.
type selection struct {
	predicate storage.SelectionPredicate
	selects   func(*v1.Namespace) bool
}

func selections() []selection {
	gold := labels.SelectorFromSet(labels.Set{"tier": "gold"})
	return []selection{
		{everything(), func(*v1.Namespace) bool { return true }},
		{namespace.Match(gold, fields.Everything()), func(ns *v1.Namespace) bool { return ns.Labels["tier"] == "gold" }},
		{namespace.Match(labels.Everything(), fields.OneTermEqualSelector("metadata.name", "b")), func(ns *v1.Namespace) bool { return ns.Name == "b" }},
	}
}

// differences returns the events of a watch at a revision. None but the last has the
// revision, and those that must have it are the last.
func differences(before, after map[string]*v1.Namespace, revision int64, bookmarks bool) []watchEvent {
	names := map[string]struct{}{}
	for name := range before {
		names[name] = struct{}{}
	}
	for name := range after {
		names[name] = struct{}{}
	}
	var events, own []watchEvent
	granted := false
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before[name], after[name]
		switch {
		case was == is:
		case is == nil:
			events = append(events, watchEvent{kind: "DELETED", name: name, version: fmt.Sprint(revision - 1), tier: was.Labels["tier"]})
		case was != nil:
			own = append(own, watchEvent{kind: "MODIFIED", name: name, version: is.ResourceVersion, tier: is.Labels["tier"]})
		case is.ResourceVersion == fmt.Sprint(revision):
			own = append(own, watchEvent{kind: "ADDED", name: name, version: is.ResourceVersion, tier: is.Labels["tier"]})
		default:
			events = append(events, watchEvent{kind: "ADDED", name: name, version: is.ResourceVersion, tier: is.Labels["tier"]})
			granted = true
		}
	}
	if n := len(events); n > 0 && events[n-1].kind == "DELETED" && len(own) == 0 {
		events[n-1].version = fmt.Sprint(revision)
	}
	events = append(events, own...)
	if granted && bookmarks {
		events = append(events, watchEvent{kind: "BOOKMARK", version: fmt.Sprint(revision)})
	}
	return events
}

// TestRandomHistory makes random changes of Namespaces and the policy, several of them
// in one transaction, and compares lists at all revisions, and watches from all
// revisions, with what follows from the definition of what a user sees.
func TestRandomHistory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	name := func() string { return pick("a", "b", "c", "d", "e") }
	users := []string{"u", "v", "w"}
	verbs := func() []string { return []string{pick("get", "get", "get", "list", "watch", "create")} }
	random := func() metav1.Object {
		switch r.IntN(10) {
		case 0, 1, 2:
			return newNamespace(name(), pick("gold", "silver"))
		case 3:
			role := newRole(pick("r", "s"), verbs())
			role.Labels = map[string]string{"aggregate": pick("true", "false")}
			return role
		case 4:
			role := newRole("named", verbs(), name(), name())
			role.Labels = map[string]string{"aggregate": pick("true", "false")}
			return role
		case 5:
			role := newRole("all", nil)
			role.Rules, role.AggregationRule = nil, &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"aggregate": "true"}}}}
			return role
		case 6:
			return bind("", pick("x", "y"), pick("r", "s", "named", "named", "all"), pick(users...))
		}
		binding := bind(name(), pick("x", "y"), pick("r", "s", "named", "all"), pick(users...), pick(users...))
		if b := binding.(*rbacv1.RoleBinding); r.IntN(5) == 0 {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "everyone"})
		}
		return binding
	}

	f := newFixture(t)
	f.decodes = func() bool { return r.IntN(2) == 0 }
	first := f.put(t, newNamespace("a"))
	states := map[int64]state{}
	now := state{keyOf(newNamespace("a")): withRevision(newNamespace("a"), first)}
	states[first] = maps.Clone(now)
	f.run(t)

	type started struct {
		user      string
		from      int64
		selection selection
		bookmarks bool
		events    <-chan watchEvent
	}
	var watches []started
	start := func(from int64) {
		s := started{user: pick(users...), from: from, selection: selections()[r.IntN(3)], bookmarks: r.IntN(2) == 0}
		options := metainternalversion.ListOptions{ResourceVersion: fmt.Sprint(from), AllowWatchBookmarks: s.bookmarks}
		// A watch from a revision has no initial events.
		s.events = watch(t.Context(), t, f.of(s.user, "everyone"), options, s.selection.predicate)
		watches = append(watches, s)
	}
	last := first
	for range *steps {
		put, deleted := map[string]metav1.Object{}, map[string]metav1.Object{}
		for range 1 + r.IntN(3)/2 {
			obj := random()
			key := keyOf(obj)
			if _, exists := now[key]; exists && r.IntN(3) == 0 {
				deleted[key] = obj
				delete(put, key)
			} else {
				put[key] = obj
				delete(deleted, key)
			}
		}
		last = f.write(t, slices.Collect(maps.Values(put)), slices.Collect(maps.Values(deleted)))
		for key, obj := range put {
			now[key] = withRevision(obj, last)
		}
		for key := range deleted {
			delete(now, key)
		}
		states[last] = maps.Clone(now)
		if r.IntN(10) == 0 {
			start(last)
		}
	}
	// The end is an event of all watches.
	last = f.put(t, newRole("end", []string{"get"}), bind("", "end", "end", users...), newNamespace("b", "gold"))
	end := maps.Clone(now)
	for _, obj := range []metav1.Object{newRole("end", []string{"get"}), bind("", "end", "end", users...), newNamespace("b", "gold")} {
		end[keyOf(obj)] = withRevision(obj, last)
	}
	states[last] = end
	for range *steps / 10 {
		start(first + r.Int64N(last-first))
	}

	for revision := first; revision <= last; revision++ {
		for _, u := range users {
			options := metainternalversion.ListOptions{ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 2}
			want := slices.Sorted(maps.Keys(states[revision].visible(u, selections()[0].selects)))
			got, page := list(t, f.of(u, "everyone"), options)
			for page.Continue != "" {
				if left := int64(len(want) - len(got)); *page.RemainingItemCount != left {
					t.Errorf("seed %d: %s at %d: %d items remain, want %d", seed, u, revision, *page.RemainingItemCount, left)
				}
				var more []string
				more, page = list(t, f.of(u, "everyone"), metainternalversion.ListOptions{Continue: page.Continue, Limit: 2})
				got = append(got, more...)
			}
			if page.ResourceVersion != fmt.Sprint(revision) || !slices.Equal(got, want) {
				t.Errorf("seed %d: %s sees %v at %s, want %v at %d", seed, u, got, page.ResourceVersion, want, revision)
			}
		}
	}
	total := 0
	for _, w := range watches {
		var want []watchEvent
		for revision := w.from + 1; revision <= last; revision++ {
			before, after := states[revision-1].visible(w.user, w.selection.selects), states[revision].visible(w.user, w.selection.selects)
			want = append(want, differences(before, after, revision, w.bookmarks)...)
		}
		for i := range want {
			if got := next(t, w.events); got != want[i] {
				t.Fatalf("seed %d: event %d of %s from %d is %+v, want %+v", seed, i, w.user, w.from, got, want[i])
			}
		}
		total += len(want)
	}
	if total < *steps {
		t.Errorf("seed %d: only %d events", seed, total)
	}
}

// withRevision returns a copy of an object with a resourceVersion.
func withRevision(obj metav1.Object, revision int64) metav1.Object {
	switch obj := obj.(type) {
	case *v1.Namespace:
		ns := obj.DeepCopy()
		ns.ResourceVersion = fmt.Sprint(revision)
		return ns
	}
	return obj
}
