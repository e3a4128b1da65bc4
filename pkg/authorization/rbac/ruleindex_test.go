// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestRuleIndex compares decisions by an index with those by each of the rules, which are
// random.
func TestRuleIndex(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	some := func(list string) (values []string) {
		all := strings.Split(list, ",")
		for range r.IntN(3) {
			values = append(values, all[r.IntN(len(all))])
		}
		return values
	}
	one := func(list string) string {
		all := strings.Split(list, ",")
		return all[r.IntN(len(all))]
	}
	allowed := 0
	for range 3000 {
		var rules []rbacv1.PolicyRule
		for range r.IntN(4) {
			rule := rbacv1.PolicyRule{
				Verbs: some("get,list,*,"), APIGroups: some("apps,*,"), ResourceNames: some("a,b,*,"),
				Resources: some("pods,pods/status,*,*/status,*/*,pods/,/status,"),
			}
			if r.IntN(5) == 0 {
				rule.NonResourceURLs = some("/a,/b*,*")
			}
			if r.IntN(20) == 0 { // too many combinations
				rule.Verbs = slices.Repeat([]string{one("get,list")}, 20)
				rule.ResourceNames = slices.Repeat([]string{one("a,b")}, 20)
			}
			rules = append(rules, rule)
		}
		plain, indexed := &role{effective: rules}, &role{effective: rules, index: newRuleIndex(rules)}
		for range 20 {
			a := authorizer.AttributesRecord{
				Verb: one("get,list,*,"), APIGroup: one("apps,*,"), Name: one("a,b,*,"), ResourceRequest: r.IntN(5) > 0,
				Resource: one("pods,*,"), Subresource: one("status,*,"), Path: one("/a,/b/c,/d"),
			}
			want := plain.allows(&wanted{Attributes: a})
			if got := indexed.allows(&wanted{Attributes: a}); got != want {
				t.Fatalf("seed %d: %+v by %+v: got %v, want %v", seed, a, rules, got, want)
			}
			if want {
				allowed++
			}
		}
	}
	if allowed < 1000 {
		t.Errorf("only %d requests were allowed", allowed)
	}
}

// TestRuleIndexIsBounded checks that an index has no more entries than a multiple of the strings
// of the rules, although a rule can have many more combinations.
func TestRuleIndexIsBounded(t *testing.T) {
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint("a", i))
		}
		return list
	}
	wide := rbacv1.PolicyRule{Verbs: many(8), APIGroups: many(2), Resources: many(2), ResourceNames: many(310)}
	usual := rule("get core pods x")
	rules := []rbacv1.PolicyRule{wide, usual, {Verbs: many(300), APIGroups: many(300), Resources: many(300)}}
	x := newRuleIndex(rules)
	if len(x.rest) != 2 || len(x.allowed) != 1 {
		t.Errorf("got %d rights, and %d rules that are not in the index", len(x.allowed), len(x.rest))
	}
	role := role{index: x}
	for _, a := range []string{"u a7 a1 a1 n a309", "u a299 a299 a299 n -", "u get core pods n x"} {
		if !role.allows(&wanted{Attributes: ask(a)}) {
			t.Errorf("%s: not allowed", a)
		}
	}
}
