// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/pkg/authfailure"
)

// newIndex returns an index that has read the objects.
func newIndex(t testing.TB, objects ...any) *Index {
	t.Helper()
	x := NewIndex(nil)
	reset(x, 1, objects...)
	return x
}

// reset replaces the policy of the index by the objects.
func reset(x *Index, revision int64, objects ...any) {
	x.Reset(revision, func(yield func(Change) bool) {
		for _, obj := range objects {
			if !yield(changeOf(obj.(metav1.Object), false)) {
				return
			}
		}
	})
}

func changeOf(obj metav1.Object, deleted bool) Change {
	c := Change{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	switch obj.(type) {
	case *rbacv1.Role:
		c.Resource = rbacv1.Resource("roles")
	case *rbacv1.RoleBinding:
		c.Resource = rbacv1.Resource("rolebindings")
	case *rbacv1.ClusterRole:
		c.Resource = rbacv1.Resource("clusterroles")
	case *rbacv1.ClusterRoleBinding:
		c.Resource = rbacv1.Resource("clusterrolebindings")
	}
	if !deleted {
		c.Object = obj.(runtime.Object)
	}
	return c
}

// change makes the index follow an event at a revision, and forget what was before.
func change(x *Index, revision int, obj metav1.Object, deleted bool) []Touch {
	touched := x.Apply(int64(revision), []Change{changeOf(obj, deleted)})
	x.policy.trim(0, 0)
	return touched
}

// entries returns how many entries the index has.
func entries(x *Index) int {
	p := &x.policy
	return len(p.roles) + len(p.pastRoles) + len(p.bindings) + len(p.subjects) + len(p.aggregating) + len(p.ended) + len(p.past)
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"}
}

// rule parses "VERBS GROUPS RESOURCES [NAMES]", or "VERBS PATHS" for paths. Each is a
// list with commas; the core group is "core".
func rule(text string) rbacv1.PolicyRule {
	var fields [][]string
	for _, f := range strings.Fields(text) {
		list := strings.Split(f, ",")
		for i := range list {
			list[i] = strings.TrimPrefix(list[i], "core")
		}
		fields = append(fields, list)
	}
	r := rbacv1.PolicyRule{Verbs: fields[0]}
	if len(fields) == 2 {
		r.NonResourceURLs = fields[1]
		return r
	}
	r.APIGroups, r.Resources = fields[1], fields[2]
	if len(fields) > 3 {
		r.ResourceNames = fields[3]
	}
	return r
}

func newRole(namespace, name string, rules ...string) *rbacv1.Role {
	role := &rbacv1.Role{ObjectMeta: named(namespace, name)}
	for _, text := range rules {
		role.Rules = append(role.Rules, rule(text))
	}
	return role
}

func newClusterRole(name string, rules ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: named("", name), Rules: newRole("", "", rules...).Rules}
}

// subjects parses KIND:NAME, and ServiceAccount:NAMESPACE/NAME.
func subjects(texts ...string) []rbacv1.Subject {
	var list []rbacv1.Subject
	for _, text := range texts {
		kind, name, _ := strings.Cut(text, ":")
		s := rbacv1.Subject{Kind: kind, Name: name}
		if namespace, name, ok := strings.Cut(name, "/"); ok && kind == rbacv1.ServiceAccountKind {
			s.Namespace, s.Name = namespace, name
		}
		list = append(list, s)
	}
	return list
}

func bind(namespace, name, kind, role string, to ...string) metav1.Object {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: named("", name), RoleRef: ref, Subjects: subjects(to...)}
	}
	return &rbacv1.RoleBinding{ObjectMeta: named(namespace, name), RoleRef: ref, Subjects: subjects(to...)}
}

// ask parses "USER[,GROUP...] VERB GROUP RESOURCE[/SUBRESOURCE] NAMESPACE NAME", with -
// for none, or "USER VERB PATH".
func ask(text string) authorizer.AttributesRecord {
	f := strings.Fields(strings.ReplaceAll(text, " -", " "+"\x00"))
	for i := range f {
		f[i] = strings.TrimPrefix(f[i], "\x00")
	}
	names := strings.Split(f[0], ",")
	a := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: names[0], Groups: names[1:]}, Verb: f[1]}
	if len(f) == 3 {
		a.Path = f[2]
		return a
	}
	a.ResourceRequest = true
	a.APIGroup = strings.TrimPrefix(f[2], "core")
	a.Resource, a.Subresource, _ = strings.Cut(f[3], "/")
	a.Namespace, a.Name = f[4], f[5]
	return a
}

func TestAuthorize(t *testing.T) {
	x := newIndex(t,
		newRole("a", "pods", "get,list core pods", "update core pods/status one"),
		newRole("b", "pods", "* core pods"),
		newClusterRole("read", "get,list,watch * *", "get /metrics,/livez/*"),
		newClusterRole("status", "get * */status"),
		bind("a", "alice", "Role", "pods", "User:alice", "Group:team"),
		bind("a", "robot", "ClusterRole", "read", "ServiceAccount:robot"),
		bind("a", "far", "ClusterRole", "read", "ServiceAccount:c/robot"),
		bind("a", "typo", "Role", "pod", "User:bob"),
		bind("a", "typo2", "ClusterRole", "nothing", "User:bob"),
		bind("", "auditors", "ClusterRole", "read", "Group:auditors", "User:eve"),
		bind("", "status", "ClusterRole", "status", "User:carl", "User:carl"),
		bind("", "account", "ClusterRole", "read", "ServiceAccount:robot"), // of no namespace
	)
	z := NewAuthorizer(x)
	for question, want := range map[string]string{
		"alice get core pods a p":                    `RBAC: allowed by RoleBinding "alice/a" of Role "pods" to User "alice"`,
		"zoe,team list core pods a -":                `RBAC: allowed by RoleBinding "alice/a" of Role "pods" to Group "team"`,
		"alice get core pods b p":                    "",
		"alice get core pods - -":                    "",
		"alice delete core pods a p":                 "",
		"alice get apps pods a p":                    "",
		"alice get core pods/log a p":                "",
		"alice update core pods/status a one":        `RBAC: allowed by RoleBinding "alice/a" of Role "pods" to User "alice"`,
		"alice update core pods/status a two":        "",
		"alice update core pods/status a -":          "",
		"team get core pods a p":                     "", // a user is not a group
		"x,alice get core pods a p":                  "",
		"system:serviceaccount:a:robot get x y a z":  `RBAC: allowed by RoleBinding "robot/a" of ClusterRole "read" to ServiceAccount "robot/a"`,
		"system:serviceaccount:c:robot get x y a z":  `RBAC: allowed by RoleBinding "far/a" of ClusterRole "read" to ServiceAccount "robot/c"`,
		"system:serviceaccount:b:robot get x y a z":  "",
		"system:serviceaccount:a:robot get x y - z":  "",
		"system:serviceaccount:a:robot get /metrics": "",
		"eve get x y/z any n":                        `RBAC: allowed by ClusterRoleBinding "auditors" of ClusterRole "read" to User "eve"`,
		"x,auditors get /metrics":                    `RBAC: allowed by ClusterRoleBinding "auditors" of ClusterRole "read" to Group "auditors"`,
		"eve get /livez/ping":                        `RBAC: allowed by ClusterRoleBinding "auditors" of ClusterRole "read" to User "eve"`,
		"eve get /livez":                             "",
		"eve post /metrics":                          "",
		"carl get core pods/status a p":              `RBAC: allowed by ClusterRoleBinding "status" of ClusterRole "status" to User "carl"`,
		"carl get core pods a p":                     "",
		"carl get core pods/other-status a p":        "",
		"bob get core pods a p":                      `RBAC: [role.rbac.authorization.k8s.io "pod" not found, clusterrole.rbac.authorization.k8s.io "nothing" not found]`,
		"bob get core pods b p":                      "",
		"system:serviceaccount::robot get x y any n": "",
		"system:anonymous,system:unauth get x y a z": "",
	} {
		decision, reason, err := z.Authorize(t.Context(), ask(question))
		if err != nil || reason != want || (decision == authorizer.DecisionAllow) != strings.Contains(want, "allowed by") {
			t.Errorf("%s: got %v, %q, %v; want %q", question, decision, reason, err, want)
		}
	}
}

func TestRulesFor(t *testing.T) {
	x := newIndex(t,
		newClusterRole("read", "get core pods", "get /metrics"),
		newRole("a", "write", "update core pods"),
		bind("", "z", "ClusterRole", "read", "User:alice"),
		bind("a", "b", "Role", "write", "Group:team", "User:alice"),
		bind("a", "a", "Role", "absent", "Group:team"),
	)
	resources, paths, incomplete, err := NewAuthorizer(x).RulesFor(t.Context(), &user.DefaultInfo{Name: "alice", Groups: []string{"team"}}, "a")
	var got []string
	for _, r := range resources {
		got = append(got, fmt.Sprint(r.GetVerbs(), r.GetResources()))
	}
	for _, r := range paths {
		got = append(got, fmt.Sprint(r.GetVerbs(), r.GetNonResourceURLs()))
	}
	if s := strings.Join(got, " "); s != "[get] [pods] [update] [pods] [get] [/metrics]" || incomplete {
		t.Errorf("got %s, incomplete %v", s, incomplete)
	}
	if err == nil || err.Error() != `role.rbac.authorization.k8s.io "absent" not found` {
		t.Errorf("error %v", err)
	}
}

func TestConfirmHeld(t *testing.T) {
	x := newIndex(t,
		newRole("a", "pods", "get,list core pods"),
		newRole("a", "both", "get,list,watch,delete core pods", "get core limits"),
		bind("a", "alice", "Role", "pods", "User:alice"),
		bind("a", "absent", "Role", "absent", "User:bob"),
	)
	z := NewAuthorizer(x)
	as := func(name string) context.Context {
		ctx := request.WithRequestInfo(request.WithNamespace(t.Context(), "a"), &request.RequestInfo{Resource: "rolebindings"})
		return request.WithUser(ctx, &user.DefaultInfo{Name: name, Groups: []string{"g"}})
	}
	if err := z.ConfirmRoleHeld(as("alice"), rbacv1.RoleRef{Kind: "Role", Name: "pods"}); err != nil {
		t.Errorf("a role that is held: %v", err)
	}
	const prefix = "user %q (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held:\n"
	for name, want := range map[string]string{
		"alice": fmt.Sprintf(prefix, "alice") + `{APIGroups:[""], Resources:["limits"], Verbs:["get"]}` + "\n" + `{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}`,
		"bob": fmt.Sprintf(prefix, "bob") + `{APIGroups:[""], Resources:["limits"], Verbs:["get"]}` + "\n" + `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list" "watch" "delete"]}` +
			`; resolution errors: [rolebindings.rbac.authorization.k8s.io "absent" not found]`,
	} {
		if err := z.ConfirmRoleHeld(as(name), rbacv1.RoleRef{Kind: "Role", Name: "both"}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v\nwant %s", name, err, want)
		}
	}
	if err := z.ConfirmRoleHeld(as("alice"), rbacv1.RoleRef{Kind: "ClusterRole", Name: "x"}); !apierrors.IsNotFound(err) {
		t.Errorf("a role that does not exist: %v", err)
	}
}

// TestCombinations checks that the cost of a comparison is bounded, before anything is
// compared.
func TestCombinations(t *testing.T) {
	many := func(n int) []string { return slices.Repeat([]string{"x"}, n) }
	x := newIndex(t, newClusterRole("all", "* * *"), bind("", "alice", "ClusterRole", "all", "User:alice"))
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"})
	for name, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  bool
	}{
		"none":         {nil, true},
		"the maximum":  {[]rbacv1.PolicyRule{{Verbs: many(10), APIGroups: many(10), Resources: many(10), ResourceNames: many(10)}}, true},
		"one more":     {[]rbacv1.PolicyRule{{Verbs: many(10), APIGroups: many(10), Resources: many(10), ResourceNames: many(10)}, rule("get core pods")}, false},
		"many rules":   {slices.Repeat([]rbacv1.PolicyRule{rule("get core pods")}, 10_001), false},
		"an overflow":  {[]rbacv1.PolicyRule{{Verbs: many(100_000), APIGroups: many(100_000), Resources: many(100_000), ResourceNames: many(100_000)}}, false},
		"paths":        {[]rbacv1.PolicyRule{{Verbs: many(101), NonResourceURLs: many(100)}}, false},
		"long names":   {[]rbacv1.PolicyRule{{Verbs: many(100), APIGroups: many(1), Resources: slices.Repeat([]string{strings.Repeat("x", 253)}, 100)}}, true},
		"a longer one": {[]rbacv1.PolicyRule{{Verbs: many(100), APIGroups: many(1), Resources: append(many(99), strings.Repeat("x", 256))}}, false},
	} {
		if err := NewAuthorizer(x).ConfirmHeld(ctx, tc.rules); (err == nil || !strings.Contains(err.Error(), "combinations")) != tc.want {
			t.Errorf("%s: got %v, want it to be compared: %v", name, err, tc.want)
		}
	}
}

// TestNotSynced checks that without a policy nothing is allowed and nothing denied.
func TestNotSynced(t *testing.T) {
	x := NewIndex(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	z := NewAuthorizer(x)
	decision, _, err := z.Authorize(ctx, ask("alice get core pods a p"))
	if decision != authorizer.DecisionNoOpinion || !apierrors.IsServiceUnavailable(err) {
		t.Errorf("before the policy is read: %v, %v", decision, err)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds != authfailure.RetryAfter {
		t.Errorf("the error has no Retry-After: %v", err)
	}
	if _, _, incomplete, err := z.RulesFor(ctx, &user.DefaultInfo{Name: "alice"}, "a"); err == nil || !incomplete {
		t.Errorf("rules, before the policy is read: incomplete %v, %v", incomplete, err)
	}
	reset(x, 1)
	if decision, _, err := z.Authorize(ctx, ask("alice get core pods a p")); decision != authorizer.DecisionNoOpinion || err != nil {
		t.Errorf("with the policy: %v, %v", decision, err)
	}
}

// TestAdvance checks that a revision without a change of the policy changes nothing.
func TestAdvance(t *testing.T) {
	x := newIndex(t)
	change(x, 4, newRole("a", "r"), false)
	changed := x.Changed("a")
	x.Advance(5)
	select {
	case <-changed:
		t.Error("the policy has changed with a revision that has no change")
	default:
	}
	change(x, 6, newRole("a", "r2"), false)
	<-changed
}

// TestChanged checks to whom a change is signalled.
func TestChanged(t *testing.T) {
	of := map[string][]string{"none": nil, "cluster": {""}, "a": {"a"}, "cluster and a": {"", "a", "a"}, "b": {"b"}, "a and b": {"a", "", "b"}}
	for name, tc := range map[string]struct {
		change func(*Index)
		want   []string
	}{
		"Role":               {func(x *Index) { change(x, 2, newRole("a", "r"), false) }, []string{"a", "a and b", "cluster and a"}},
		"RoleBinding":        {func(x *Index) { change(x, 2, bind("b", "r", "Role", "r"), false) }, []string{"a and b", "b"}},
		"elsewhere":          {func(x *Index) { change(x, 2, newRole("c", "r"), false) }, []string{"a and b"}},
		"ClusterRole":        {func(x *Index) { change(x, 2, newClusterRole("r"), false) }, slices.Sorted(maps.Keys(of))},
		"ClusterRoleBinding": {func(x *Index) { change(x, 2, bind("", "r", "ClusterRole", "r"), false) }, slices.Sorted(maps.Keys(of))},
		"reset":              {func(x *Index) { reset(x, 2) }, slices.Sorted(maps.Keys(of))},
		"two at once": {func(x *Index) {
			x.Apply(2, []Change{changeOf(newRole("a", "r"), false), changeOf(newRole("b", "r"), false)})
		}, []string{"a", "a and b", "b", "cluster and a"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newIndex(t)
			channels := map[string]<-chan struct{}{}
			for name, namespaces := range of {
				channels[name] = x.Changed(namespaces...)
			}
			tc.change(x)
			var got []string
			for name, channel := range channels {
				select {
				case <-channel:
					got = append(got, name)
				default:
				}
			}
			if slices.Sort(got); !slices.Equal(got, tc.want) {
				t.Errorf("signalled to %q, want %q", got, tc.want)
			}
		})
	}
}
