// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// scan decides by reading all objects, as is obvious from the definition of RBAC.
func scan(objects map[string]metav1.Object, a authorizer.AttributesRecord) bool {
	rules := func(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
		switch role := objects[key(ref.Kind, namespace, ref.Name)].(type) {
		case *rbacv1.Role:
			return role.Rules
		case *rbacv1.ClusterRole:
			return role.Rules
		}
		return nil
	}
	is := func(list []rbacv1.Subject, namespace string) bool {
		return slices.ContainsFunc(list, func(s rbacv1.Subject) bool {
			switch s.Kind {
			case rbacv1.UserKind:
				return s.Name == a.User.GetName()
			case rbacv1.GroupKind:
				return slices.Contains(a.User.GetGroups(), s.Name)
			}
			return a.User.GetName() == "system:serviceaccount:"+cmp.Or(s.Namespace, namespace)+":"+s.Name
		})
	}
	for _, obj := range objects {
		var granted []rbacv1.PolicyRule
		switch b := obj.(type) {
		case *rbacv1.ClusterRoleBinding:
			if is(b.Subjects, "") {
				granted = rules(b.RoleRef, "")
			}
		case *rbacv1.RoleBinding:
			if b.Namespace == a.Namespace && is(b.Subjects, b.Namespace) {
				granted = rules(b.RoleRef, b.Namespace)
			}
		}
		for i := range granted {
			if ruleAllows(&granted[i], a) {
				return true
			}
		}
	}
	return false
}

func key(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		namespace = ""
	}
	return kind + " " + namespace + "/" + name
}

// TestRandomPolicies makes random changes, and compares the decisions of the index
// with those of a scan.
func TestRandomPolicies(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	name := func() string { return pick("a", "b", "c") }
	someSubjects := func() (list []rbacv1.Subject) {
		for range r.IntN(4) {
			s := rbacv1.Subject{Kind: pick(rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind), Name: name()}
			if s.Kind == rbacv1.ServiceAccountKind {
				s.Namespace = pick("", "m", "n")
			}
			list = append(list, s)
		}
		return list
	}
	someRules := func() (list []rbacv1.PolicyRule) {
		for range r.IntN(3) {
			list = append(list, rule(pick("get", "list", "*")+" core,apps "+pick("pods", "*", "pods/status", "*/status")+pick("", "", " a")))
		}
		return list
	}
	random := func() metav1.Object {
		switch r.IntN(4) {
		case 0:
			return &rbacv1.Role{ObjectMeta: named(pick("m", "n"), name()), Rules: someRules()}
		case 1:
			return &rbacv1.ClusterRole{ObjectMeta: named("", name()), Rules: someRules()}
		case 2:
			ref := rbacv1.RoleRef{Kind: pick("Role", "ClusterRole"), Name: name()}
			return &rbacv1.RoleBinding{ObjectMeta: named(pick("m", "n"), name()), RoleRef: ref, Subjects: someSubjects()}
		}
		ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: name()}
		return &rbacv1.ClusterRoleBinding{ObjectMeta: named("", name()), RoleRef: ref, Subjects: someSubjects()}
	}

	x := newIndex(t)
	z := NewAuthorizer(x)
	objects := map[string]metav1.Object{}
	allowed := 0
	for i := range 3000 {
		obj := random()
		kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.")
		k := key(kind, obj.GetNamespace(), obj.GetName())
		_, exists := objects[k]
		switch {
		case i%100 == 99: // as after a watch that was lost
			var list []any
			for k, o := range objects {
				if r.IntN(3) == 0 {
					delete(objects, k)
				} else {
					list = append(list, o)
				}
			}
			reset(x, int64(i+2), list...)
		case exists && r.IntN(3) == 0:
			delete(objects, k)
			change(x, i+2, obj, true)
		default:
			objects[k] = obj
			change(x, i+2, obj, false)
		}
		for range 10 {
			u := &user.DefaultInfo{Name: pick("a", "b", "system:serviceaccount:m:a", "system:serviceaccount:n:b"), Groups: []string{name(), "x", name()}}
			a := authorizer.AttributesRecord{User: u, Verb: pick("get", "list", "x"), APIGroup: pick("", "apps", "y"), Resource: "pods",
				Subresource: pick("", "status"), Namespace: pick("", "m", "n"), Name: pick("", "a"), ResourceRequest: true}
			decision, reason, err := z.Authorize(t.Context(), a)
			want := scan(objects, a)
			if err != nil || (decision == authorizer.DecisionAllow) != want {
				t.Fatalf("seed %d, change %d: %+v of %v: got %v (%s), %v, want allowed %v", seed, i, a, u, decision, reason, err, want)
			}
			if want {
				allowed++
			}
		}
	}
	if allowed < 1000 {
		t.Errorf("only %d requests were allowed", allowed)
	}
	for i, obj := range slices.Collect(maps.Values(objects)) {
		change(x, 10_000+i, obj, true)
	}
	if n := entries(x); n != 0 {
		t.Errorf("an index without a policy keeps %d entries", n)
	}
}
