// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// TestUncovered compares random rules, and the results with those of Kubernetes.
func TestUncovered(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	some := func(most int, choices ...string) (list []string) {
		for range r.IntN(most + 1) {
			list = append(list, choices[r.IntN(len(choices))])
		}
		return list
	}
	someRules := func() (list []rbacv1.PolicyRule) {
		for range r.IntN(5) {
			list = append(list, rbacv1.PolicyRule{
				Verbs:           some(3, "get", "list", "*"),
				APIGroups:       some(2, "", "apps", "*"),
				Resources:       some(3, "pods", "pods/log", "pods/log/x", "*/log", "*/log/x", "*"),
				ResourceNames:   some(1, "a", "b", ""),
				NonResourceURLs: some(1, "/a", "/a*", "/a/b", "/a/**", "*"),
			})
		}
		return list
	}
	seen := map[bool]int{}
	for range 10_000 {
		held, rules := someRules(), someRules()
		got, err := uncovered(t.Context(), held, rules)
		if err != nil {
			t.Fatal(err)
		}
		_, want := validation.Covers(held, rules)
		if diff := cmp.Diff(append([]rbacv1.PolicyRule{}, got...), want); diff != "" {
			t.Fatalf("seed %d: rules %v, held %v: %s", seed, rules, held, diff)
		}
		if len(rules) > 0 {
			seen[len(got) == 0]++
		}
	}
	if seen[true] < 1000 || seen[false] < 1000 {
		t.Errorf("covered and not: %v", seen)
	}
}

// TestComparisonCost checks that the lists of the rules that a user holds are read once,
// not for each combination.
func TestComparisonCost(t *testing.T) {
	const combinations, held = 500, 20
	numbered := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("x%d", i))
		}
		return list
	}
	wanted := []rbacv1.PolicyRule{{Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: numbered(combinations)}}
	role := newRole("a", "long")
	for i := range held {
		list := numbered(1000 + i)
		role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: list, APIGroups: list, Resources: list, ResourceNames: list})
	}
	z := NewAuthorizer(newIndex(t, role, bind("a", "alice", "Role", "long", "User:alice")))
	ctx := request.WithNamespace(request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), "a")
	allocations := testing.AllocsPerRun(1, func() {
		if err := z.ConfirmHeld(ctx, wanted); err == nil {
			t.Error("rights are held that were not granted")
		}
	})
	if allocations > combinations*held*10 {
		t.Errorf("%.0f allocations for %d combinations and %d rules", allocations, combinations, held)
	}
}

// TestComparisonEnds checks that a comparison ends with its request.
func TestComparisonEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone")
	cancel(gone)
	rules := []rbacv1.PolicyRule{rule("get core pods")}
	if _, err := uncovered(ctx, rules, rules); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// TestComparisonMemory checks that a comparison needs no memory for the rules that a user
// holds after those that have all rights.
func TestComparisonMemory(t *testing.T) {
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprint("x", i)
	}
	held := append([]rbacv1.PolicyRule{rule("get core pods")}, slices.Repeat([]rbacv1.PolicyRule{{Verbs: []string{"list"}, ResourceNames: names}}, 40)...)
	allocations := testing.AllocsPerRun(1, func() {
		if missing, err := uncovered(t.Context(), held, held[:1]); err != nil || len(missing) > 0 {
			t.Errorf("missing %v, error %v", missing, err)
		}
	})
	if allocations > 100 {
		t.Errorf("%.0f allocations", allocations)
	}
}
