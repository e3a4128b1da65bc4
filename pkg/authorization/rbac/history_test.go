// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestHistorySize checks that small changes of large objects do not keep many large
// versions, and that those of small objects do not end the history.
func TestHistorySize(t *testing.T) {
	const changes = 300
	large := strings.Repeat("x", 10_000)
	var names, users []string
	for i := range 2000 {
		users = append(users, fmt.Sprintf("User:%0250d", i))
	}
	for range 100 {
		names = append(names, large)
	}
	for name, tc := range map[string]struct {
		object func(i int) metav1.Object
		most   int // versions
	}{
		"a small role": {func(i int) metav1.Object { return newRole("a", "r", fmt.Sprintf("v%d core pods", i)) }, changes},
		"a large role": {func(i int) metav1.Object {
			r := newRole("a", "r", fmt.Sprintf("v%d core pods", i))
			r.Rules[0].ResourceNames = names
			return r
		}, 150},
		"many rules": {func(i int) metav1.Object {
			r := newRole("a", "r")
			r.Rules = make([]rbacv1.PolicyRule, 10_000)
			r.Rules[0] = rule(fmt.Sprintf("v%d core pods", i))
			return r
		}, 100},
		"large labels": {func(i int) metav1.Object {
			return labelled(newClusterRole("r", fmt.Sprintf("v%d core pods", i)), strings.Repeat(large, 100))
		}, 150},
		"many subjects": {func(i int) metav1.Object { return bind("a", "b", "Role", fmt.Sprint("r", i), users...) }, 250},
	} {
		t.Run(name, func(t *testing.T) {
			x := newIndex(t)
			for i := range changes + 1 {
				x.Apply(int64(i+2), []Change{changeOf(tc.object(i), false)})
			}
			if n := len(x.policy.ended); n > tc.most || n < 50 {
				t.Errorf("%d versions that have ended are kept, of %d", n, changes)
			}
			if begins := x.Floor() > 1; begins != (tc.most < changes) {
				t.Errorf("the history begins at %d", x.Floor())
			}
			x.policy.trim(0, 0)
			if x.policy.endedBytes != 0 {
				t.Errorf("an empty history has %d bytes", x.policy.endedBytes)
			}
		})
	}
}

// TestDecisionsWithHistory checks that what is read at a position are the bindings that are
// in force there, and not what they were before or after, or those that were deleted.
func TestDecisionsWithHistory(t *testing.T) {
	x := newIndex(t, newClusterRole("r", "get core pods"))
	const last = 100
	for revision := int64(2); revision <= last; revision++ {
		var changes []Change
		for _, namespace := range []string{"", "a"} {
			changed := bind(namespace, "b", "ClusterRole", "r", "User:u", "Group:g", fmt.Sprint("User:", revision))
			created := bind(namespace, fmt.Sprint(revision), "ClusterRole", "r", "User:u", "Group:g")
			deleted := bind(namespace, fmt.Sprint(revision-1), "", "")
			changes = append(changes, changeOf(changed, false), changeOf(created, false), changeOf(deleted, true))
		}
		x.Apply(revision, changes)
	}
	u := &user.DefaultInfo{Name: "u", Groups: []string{"g"}}
	for _, namespace := range []string{"", "a"} {
		for position, at := range map[int64]int{latest: last, last: last, last - 1: last - 1, 2: 2, 1: 1} {
			var got []string
			for b := range x.policy.applying(u, namespace, position) {
				if b.namespace == namespace {
					got = append(got, b.name)
				}
			}
			slices.Sort(got) // each is for both subjects
			got = slices.Compact(got)
			want := []string{fmt.Sprint(at), "b"}
			if at == 1 {
				want = nil // there was none
			}
			if !slices.Equal(got, want) {
				t.Errorf("in the namespace %q at %d: got %v, want %v", namespace, position, got, want)
			}
		}
	}
}

// TestRightsOfManyBindings changes roles and bindings at random, of a subject with so many of
// them in a Namespace that its rights are kept, and reads the rights at each position of the
// history, and at the one that follows.
func TestRightsOfManyBindings(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	namespaces := []string{"a", "b", "c"}
	const roles = 5
	gets, bound := map[string]bool{}, map[string]string{} // roles, and those of bindings, by namespace/name
	// One of the roles is a ClusterRole.
	newRole := func(namespace, name string, rule string) metav1.Object {
		if name == "r0" {
			return newClusterRole(name, rule)
		}
		return newRole(namespace, name, rule)
	}
	roleKey := func(namespace, name string) string {
		if name == "r0" {
			return name
		}
		return namespace + "/" + name
	}
	bind := func(namespace, name, role string) metav1.Object {
		kind := "Role"
		if role == "r0" {
			kind = "ClusterRole"
		}
		return bind(namespace, name, kind, role, "Group:g")
	}
	var objects []any
	for _, namespace := range namespaces {
		for i := range roles {
			objects = append(objects, newRole(namespace, fmt.Sprint("r", i), "get core pods"))
		}
		for i := range 2 * manyBindings {
			name, role := fmt.Sprint("b", i), fmt.Sprint("r", r.IntN(roles))
			bound[namespace+"/"+name] = roleKey(namespace, role)
			objects = append(objects, bind(namespace, name, role))
		}
	}
	x := newIndex(t, objects...)
	subjects := []Subject{{Name: "u"}, {Group: true, Name: "g"}}
	want := [][]string{nil, nil} // the Namespaces that may be got, by position
	compare := func(position int64, want []string) {
		t.Helper()
		for _, namespace := range namespaces {
			if get, _ := x.RightsIn(namespace, subjects, position); get != slices.Contains(want, namespace) {
				t.Fatalf("seed %d: %s at %d: got %v", seed, namespace, position, get)
			}
		}
		if names, all := x.Visible(subjects, "", position, 0); !slices.Equal(names, want) || all {
			t.Fatalf("seed %d: at %d: got %v, want %v", seed, position, names, want)
		}
		later := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return name < "b" })
		if names, _ := x.Visible(subjects, "b", position, 1); !slices.Equal(names, later[:min(1, len(later))]) {
			t.Fatalf("seed %d: at %d, from b: got %v, want the first of %v", seed, position, names, later)
		}
	}
	for position := int64(2); position < 200; position++ {
		compare(position, want[position-1])
		namespace := namespaces[r.IntN(len(namespaces))]
		role := fmt.Sprint("r", r.IntN(roles))
		if r.IntN(2) == 0 {
			rule := "get core pods"
			if gets[roleKey(namespace, role)] = r.IntN(4) == 0; gets[roleKey(namespace, role)] {
				rule = "get tenancy.borough.io namespaces"
			}
			x.Apply(position, []Change{changeOf(newRole(namespace, role, rule), false)})
		} else {
			name, deleted := fmt.Sprint("b", r.IntN(2*manyBindings)), r.IntN(2) == 0
			if bound[namespace+"/"+name] = roleKey(namespace, role); deleted {
				delete(bound, namespace+"/"+name)
			}
			x.Apply(position, []Change{changeOf(bind(namespace, name, role), deleted)})
		}
		var visible []string
		for binding, role := range bound {
			if gets[role] {
				visible = append(visible, strings.Split(binding, "/")[0])
			}
		}
		want = append(want, sortedUnique(visible))
	}
	for range 500 {
		position := 1 + r.IntN(len(want)-1)
		compare(int64(position), want[position])
	}
}

// TestResetKeepsNothing checks that nothing of a policy stays in memory after it was replaced.
func TestResetKeepsNothing(t *testing.T) {
	policy := []any{bind("other", "b", "ClusterRole", "r", "User:u")}
	for i := range manyBindings {
		policy = append(policy, bind("a", fmt.Sprint("b", i), "ClusterRole", "r", "Group:g"))
	}
	x := newIndex(t, policy...)
	x.RightsIn("a", []Subject{{Group: true, Name: "g"}}, 1)
	old := weak.Make(x.policy.bindings["other"][0])
	reset(x, 2, policy...)
	runtime.GC()
	if old.Value() != nil {
		t.Error("a binding is still in memory")
	}
	runtime.KeepAlive(x)
}

// TestTrimTwoVersions trims two versions of a role that have ended at one position.
func TestTrimTwoVersions(t *testing.T) {
	x := newIndex(t, newRole("a", "r", "get core pods"))
	x.Apply(2, []Change{changeOf(newRole("a", "r", "list core pods"), false), changeOf(newRole("a", "r"), true)})
	x.policy.trim(0, 0)
	if n := entries(x); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
