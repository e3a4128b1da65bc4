// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
