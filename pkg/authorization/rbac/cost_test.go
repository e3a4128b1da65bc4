// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestComparisons checks that a user cannot make comparisons expensive by what the user
// holds.
func TestComparisons(t *testing.T) {
	different := newClusterRole("different")
	for i := range 5000 {
		different.Rules = append(different.Rules, rule(fmt.Sprintf("get core r%d", i)))
	}
	same := newClusterRole("same")
	same.Rules = slices.Repeat([]rbacv1.PolicyRule{rule("get core pods")}, 5000)
	long := newClusterRole("long")
	long.Rules = slices.Repeat([]rbacv1.PolicyRule{{Verbs: slices.Repeat([]string{"get"}, 10_000)}}, 201)
	paths := newClusterRole("paths")
	paths.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: slices.Repeat([]string{"/x*"}, 2001)}}
	heavy := newClusterRole("heavy")
	heavy.Rules = slices.Repeat([]rbacv1.PolicyRule{{Verbs: []string{"get"}, ResourceNames: slices.Repeat([]string{strings.Repeat("x", 250)}, 5_600)}}, 50)
	many := newClusterRole("many")
	many.Rules = []rbacv1.PolicyRule{{Verbs: []string{"list"}, ResourceNames: slices.Repeat([]string{"x"}, maxHeld)}}
	x := newIndex(t, different, same, long, paths, heavy, many,
		bind("", "frank", "ClusterRole", "many", "User:frank"),
		bind("", "eve", "ClusterRole", "heavy", "User:eve"),
		bind("", "alice", "ClusterRole", "different", "User:alice"), bind("", "bob", "ClusterRole", "same", "User:bob"),
		bind("", "carol", "ClusterRole", "long", "User:carol"), bind("", "dave", "ClusterRole", "paths", "User:dave"))
	wanted := []rbacv1.PolicyRule{rule("get core pods")}
	wanted[0].ResourceNames = slices.Repeat([]string{"x"}, 1000)
	for name, refused := range map[string]bool{"alice": true, "bob": false, "carol": true, "dave": true, "eve": true, "frank": true} {
		err := NewAuthorizer(x).ConfirmHeld(request.WithUser(t.Context(), &user.DefaultInfo{Name: name}), wanted)
		if got := err != nil && strings.Contains(err.Error(), "too many to compare"); got != refused {
			t.Errorf("%s: got %v, want it to be refused: %v", name, err, refused)
		}
	}
}

// TestLongDenial checks that the rights that a user lacks are listed up to a bound.
func TestLongDenial(t *testing.T) {
	long := func(n int) []string {
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprintf("%d%s", i, strings.Repeat("x", longString-10))
		}
		return values
	}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: long(21), Resources: long(21), ResourceNames: long(22)}}
	err := NewAuthorizer(newIndex(t)).ConfirmHeld(request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), rules)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if size, last := len(err.Error()), lines[len(lines)-1]; size > maxMissingBytes+1000 || last != fmt.Sprintf("and %d more", 21*21*22-(len(lines)-2)) {
		t.Errorf("got %d lines with %d bytes, the last one is %.100q", len(lines), size, last)
	}
}

// TestManyRules checks that the rules of a user who has many roles are listed up to a bound.
func TestManyRules(t *testing.T) {
	const each = maxHeld / 10 // strings of a role: rules have three
	var objects []any
	for i := range 11 {
		large := newClusterRole(fmt.Sprint("large-", i))
		for j := range each/3 - 1 {
			large.Rules = append(large.Rules, rule(fmt.Sprintf("get core r%d-%d", i, j)))
		}
		objects = append(objects, large, bind("n", large.Name, "ClusterRole", large.Name, "User:alice"))
		if i > 0 {
			objects = append(objects, bind("n", large.Name+"-bob", "ClusterRole", large.Name, "User:bob"))
		}
	}
	z := NewAuthorizer(newIndex(t, objects...))
	for name, want := range map[string]struct {
		rules      int
		incomplete bool
	}{"alice": {maxHeld / 3, true}, "bob": {10 * (each/3 - 1), false}} {
		rules, _, incomplete, err := z.RulesFor(t.Context(), &user.DefaultInfo{Name: name}, "n")
		if len(rules) != want.rules || incomplete != want.incomplete || (err != nil) != want.incomplete {
			t.Errorf("%s: got %d rules, incomplete %v, error %v, want %v", name, len(rules), incomplete, err, want)
		}
	}
}

// countingAttributes counts how often the name is read.
type countingAttributes struct {
	authorizer.AttributesRecord
	names int
}

func (a *countingAttributes) GetName() string {
	a.names++
	return a.Name
}

// TestAlternatingRoles checks that a decision reads each of two roles once, to which a user has
// bindings in turn.
func TestAlternatingRoles(t *testing.T) {
	names := make([]string, 200)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	var objects []any
	for i := range 2 {
		objects = append(objects, newRole("n", fmt.Sprint("r", i), "get core pods "+strings.Join(names, ",")))
	}
	for i := range 1000 {
		objects = append(objects, bind("n", fmt.Sprintf("b-%04d", i), "Role", fmt.Sprint("r", i%2), "User:alice"))
	}
	z := NewAuthorizer(newIndex(t, objects...))
	a := &countingAttributes{AttributesRecord: authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "alice"}, Verb: "get", Resource: "pods", Namespace: "n", Name: "x", ResourceRequest: true}}
	if decision, _, err := z.Authorize(t.Context(), a); decision != authorizer.DecisionNoOpinion || err != nil || a.names > 2 {
		t.Errorf("got %v, error %v, and the name was compared %d times", decision, err, a.names)
	}
}

// TestLargeRole checks that a decision does not read all rules of a role, of which a tenant
// can write thousands.
func TestLargeRole(t *testing.T) {
	rules := make([]string, maxCombinations)
	for i := range rules {
		rules[i] = fmt.Sprint("get core pods name-", i)
	}
	z := NewAuthorizer(newIndex(t, newRole("n", "large", rules...), bind("n", "b", "Role", "large", "User:alice")))
	for name, want := range map[string]authorizer.Decision{
		"name-0": authorizer.DecisionAllow, fmt.Sprint("name-", len(rules)-1): authorizer.DecisionAllow, "x": authorizer.DecisionNoOpinion,
	} {
		a := &countingAttributes{AttributesRecord: authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "alice"}, Verb: "get", Resource: "pods", Namespace: "n", Name: name, ResourceRequest: true}}
		if decision, _, err := z.Authorize(t.Context(), a); decision != want || err != nil || a.names > 12 {
			t.Errorf("%s: got %v, error %v, and the name was compared %d times", name, decision, err, a.names)
		}
	}
}

// TestManyBindings checks what a decision costs a user who has many bindings to one large
// role, or to roles that do not exist: a tenant can create both.
func TestManyBindings(t *testing.T) {
	const count = 1_000
	names := make([]string, count)
	var objects []any
	for i := range count {
		names[i] = fmt.Sprint("name-", i)
		objects = append(objects,
			bind("n", fmt.Sprint("large-", i), "Role", "large", "User:alice"),
			bind("n", fmt.Sprint("missing-", i), "Role", fmt.Sprint("missing-", i), "User:bob"))
	}
	large := newRole("n", "large", "get core pods "+strings.Join(names, ","))
	z := NewAuthorizer(newIndex(t, append(objects, large)...))
	alice, bob := &user.DefaultInfo{Name: "alice"}, &user.DefaultInfo{Name: "bob"}

	a := &countingAttributes{AttributesRecord: authorizer.AttributesRecord{User: alice, Verb: "get", Resource: "pods", Namespace: "n", Name: "x", ResourceRequest: true}}
	if decision, _, err := z.Authorize(t.Context(), a); decision != authorizer.DecisionNoOpinion || err != nil || a.names > 12 {
		t.Errorf("got %v, error %v, and the name was compared %d times", decision, err, a.names)
	}
	if rules, _, _, err := z.RulesFor(t.Context(), alice, "n"); err != nil || len(rules) != 1 {
		t.Errorf("got %d rules, error %v", len(rules), err)
	}
	_, reason, err := z.Authorize(t.Context(), authorizer.AttributesRecord{User: bob, Verb: "get", Resource: "pods", Namespace: "n", ResourceRequest: true})
	if want := fmt.Sprintf("%d more roles not found", count-maxMissingRoles); err != nil || len(reason) > 100*maxMissingRoles || !strings.Contains(reason, want) {
		t.Errorf("got a reason of %d bytes, error %v, want one with %q", len(reason), err, want)
	}
}
