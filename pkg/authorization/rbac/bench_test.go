// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// tenants returns 100 ClusterRoles and one RoleBinding in each of some Namespaces.
func tenants(namespaces int) []any {
	var objects []any
	for i := range 100 {
		objects = append(objects, newClusterRole(fmt.Sprintf("role-%d", i), "get,list,watch core pods,limitranges", "create,update,patch,delete core pods"))
	}
	for i := range namespaces {
		objects = append(objects, bind(fmt.Sprintf("namespace-%d", i), "tenants", "ClusterRole", fmt.Sprintf("role-%d", i%100), fmt.Sprintf("User:user-%d", i), fmt.Sprintf("Group:team-%d", i)))
	}
	return objects
}

func BenchmarkAuthorize(b *testing.B) {
	for _, namespaces := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("namespaces=%d", namespaces), func(b *testing.B) {
			z := NewAuthorizer(newIndex(b, tenants(namespaces)...))
			a := authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "user-7", Groups: []string{"a", "b", "team-7", "system:authenticated"}},
				Verb: "create", Resource: "pods", Namespace: "namespace-7", ResourceRequest: true,
			}
			b.ReportAllocs()
			for b.Loop() {
				if decision, _, err := z.Authorize(b.Context(), a); decision != authorizer.DecisionAllow || err != nil {
					b.Fatal(decision, err)
				}
			}
		})
	}
}

// BenchmarkMemory reports the live heap of an index for each of 100,000 bindings.
func BenchmarkMemory(b *testing.B) {
	live := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	for b.Loop() {
		before := live()
		x := newIndex(b, tenants(100_000)...)
		b.ReportMetric(float64(live()-before)/100_000, "B/binding")
		runtime.KeepAlive(x)
	}
}

// BenchmarkHistory changes a role and a binding of a full history, and decides by them as
// they were a few thousand changes before.
func BenchmarkHistory(b *testing.B) {
	x := newIndex(b, bind("", "b", "ClusterRole", "r", "User:u"))
	revision := int64(1)
	change := func() {
		revision++
		x.Apply(revision, []Change{
			changeOf(newClusterRole("r", fmt.Sprint("get core v", revision)), false),
			changeOf(bind("", "b", "ClusterRole", "r", "User:u", fmt.Sprint("User:", revision)), false),
		})
	}
	for range maxEnded {
		change()
	}
	const before = 5000
	a := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "u"}, Verb: "get", ResourceRequest: true}
	b.ReportAllocs()
	for b.Loop() {
		change()
		a.Resource = fmt.Sprint("v", revision-before)
		if allowed, err := x.AllowsAt(b.Context(), a, revision-before); !allowed || err != nil {
			b.Fatal(allowed, err)
		}
	}
}

// BenchmarkFullHistory reads the rights of a user of whom a full history has a binding in each of
// many other Namespaces: in one Namespace, as they were before, and in all, as they are.
func BenchmarkFullHistory(b *testing.B) {
	x := newIndex(b, newClusterRole("r", "get tenancy.borough.io namespaces"), bind("quiet", "b", "ClusterRole", "r", "User:u"))
	last := int64(1)
	for i := range maxEnded {
		for _, deleted := range []bool{false, true} {
			last++
			x.Apply(last, []Change{changeOf(bind(fmt.Sprint("busy-", i), "b", "ClusterRole", "r", "User:u"), deleted)})
		}
	}
	subjects := []Subject{{Name: "u"}}
	b.Run("past rights in one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if get, _ := x.RightsIn("quiet", subjects, 2); !get {
				b.Fatal("the user has no right")
			}
		}
	})
	b.Run("rights in all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if names, _ := x.Visible(subjects, "", last, 0); len(names) != 1 {
				b.Fatalf("the user sees %d Namespaces", len(names))
			}
		}
	})
}

// BenchmarkLargeRole changes a role of thousands of names to which thousands of bindings refer.
func BenchmarkLargeRole(b *testing.B) {
	const count = 5_000
	names := make([]string, count)
	objects := make([]any, 0, count+1)
	for i := range count {
		names[i] = fmt.Sprintf("name-%05d", i)
		objects = append(objects, bind("n", fmt.Sprint("b-", i), "Role", "r", "User:u"))
	}
	role := func(last int) *rbacv1.Role {
		names[count-1] = fmt.Sprintf("name-%05d", count+last)
		return newRole("n", "r", "get tenancy.borough.io namespaces "+strings.Join(names, ","))
	}
	x := newIndex(b, append(objects, role(0))...)
	for revision := int64(2); b.Loop(); revision++ {
		if touched := x.Apply(revision, []Change{changeOf(role(1+int(revision)%2), false)}); len(touched) != 1 {
			b.Fatalf("%d Namespaces are touched", len(touched))
		}
	}
}

// BenchmarkTenant decides in a Namespace whose admin has stored very many rules and bindings,
// and lists the Namespaces of a user whom they bind.
func BenchmarkTenant(b *testing.B) {
	u := &user.DefaultInfo{Name: "u", Groups: []string{"g"}}
	denied := authorizer.AttributesRecord{User: u, Verb: "get", Resource: "pods", Namespace: "n", Name: "x", ResourceRequest: true}
	bench := func(name string, objects ...any) {
		z := NewAuthorizer(newIndex(b, objects...))
		b.Run("decision/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if decision, _, err := z.Authorize(b.Context(), denied); decision != authorizer.DecisionNoOpinion || err != nil {
					b.Fatal(decision, err)
				}
			}
		})
		b.Run("list/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if names, all := z.index.Visible(Subjects(u), "", 1, 0); len(names) > 0 || all {
					b.Fatal(names, all)
				}
			}
		})
	}
	var objects []any
	for i := range 28 {
		name := fmt.Sprint("large-", i)
		rules := make([]string, 10_000)
		for j := range rules {
			rules[j] = fmt.Sprintf("get core pods name-%d-%d", i, j)
		}
		objects = append(objects, newRole("n", name, rules...), bind("n", name, "Role", name, "User:u"))
	}
	bench("rules", objects...)
	objects = nil
	for i := range 20_000 {
		name := fmt.Sprint("small-", i)
		objects = append(objects, newRole("n", name, "get core pods "+name), bind("n", name, "Role", name, "User:u"))
	}
	bench("roles", objects...)
	objects = []any{newRole("n", "one", "get core pods one")}
	for i := range 20_000 {
		objects = append(objects, bind("n", fmt.Sprint("b-", i), "Role", "one", "User:u", "Group:g"))
	}
	bench("bindings", objects...)
}

// BenchmarkTouches compares a change of a role to which one binding refers with a subject that
// has 20,000 others in the Namespace.
func BenchmarkTouches(b *testing.B) {
	objects := []any{newRole("n", "one", "get core pods"), newRole("n", "two"), bind("n", "z", "Role", "two", "Group:g")}
	for i := range 20_000 {
		objects = append(objects, bind("n", fmt.Sprint("b-", i), "Role", "one", "Group:g"))
	}
	x := newIndex(b, objects...)
	touches := x.Apply(2, []Change{changeOf(newRole("n", "two", "get tenancy.borough.io namespaces"), false)})
	for b.Loop() {
		if !x.Touches(&touches[0], []Subject{{Name: "u"}, {Group: true, Name: "g"}}) {
			b.Fatal("the group is not touched")
		}
	}
}
