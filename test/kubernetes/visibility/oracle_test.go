// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func meta(namespace, name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}
	for _, label := range labels {
		m.Labels[label] = "true"
	}
	return m
}

func namespace(name string, labels ...string) runtime.Object {
	return &v1.Namespace{ObjectMeta: meta("", name, labels...)}
}

// rule returns a rule for the Namespaces that are named, or all.
func rule(verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces"}, Verbs: strings.Split(verbs, ","), ResourceNames: names}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) runtime.Object {
	return &rbacv1.Role{ObjectMeta: meta(namespace, name), Rules: rules}
}

func clusterRole(name, label string, rules ...rbacv1.PolicyRule) runtime.Object {
	return &rbacv1.ClusterRole{ObjectMeta: meta("", name, label), Rules: rules}
}

// aggregating returns a ClusterRole that aggregates those with a label.
func aggregating(name, label, selected string, rules ...rbacv1.PolicyRule) runtime.Object {
	return &rbacv1.ClusterRole{ObjectMeta: meta("", name, label), Rules: rules, AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{selected: "true"}}},
	}}
}

// subject parses KIND:NAME or ServiceAccount:NAMESPACE/NAME.
func subject(text string) []rbacv1.Subject {
	kind, name, _ := strings.Cut(text, ":")
	s := rbacv1.Subject{Kind: kind, Name: name}
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		s.Namespace, s.Name = namespace, name
	}
	return []rbacv1.Subject{s}
}

func bind(namespace, kind, role, to string) runtime.Object {
	ref := rbacv1.RoleRef{Kind: kind, Name: role}
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", role), RoleRef: ref, Subjects: subject(to)}
	}
	return &rbacv1.RoleBinding{ObjectMeta: meta(namespace, role), RoleRef: ref, Subjects: subject(to)}
}

// TestPolicy compares what alice sees of the Namespaces a and b with what Kubernetes
// would let her get.
func TestPolicy(t *testing.T) {
	alice := identity{"alice", []string{"staff", "system:authenticated"}}
	get := rule("get")
	for name, test := range map[string]struct {
		who  identity
		have []runtime.Object
		want string
	}{
		"no policy":        {alice, nil, ""},
		"system:masters":   {identity{"root", []string{"system:masters"}}, nil, "a b"},
		"a Role":           {alice, []runtime.Object{role("a", "r", get), bind("a", "Role", "r", "User:alice")}, "a"},
		"another's":        {alice, []runtime.Object{role("a", "r", get), bind("a", "Role", "r", "User:bob")}, ""},
		"a group":          {alice, []runtime.Object{role("a", "r", get), bind("a", "Role", "r", "Group:staff")}, "a"},
		"a name as group":  {alice, []runtime.Object{role("a", "r", get), bind("a", "Role", "r", "Group:alice")}, ""},
		"a Role elsewhere": {alice, []runtime.Object{role("b", "r", get), bind("a", "Role", "r", "User:alice")}, ""},
		"a service account": {identity{"system:serviceaccount:b:robot", nil},
			[]runtime.Object{role("a", "r", get), bind("a", "Role", "r", "ServiceAccount:b/robot")}, "a"},
		"a service account of the same namespace": {identity{"system:serviceaccount:a:robot", nil},
			[]runtime.Object{role("a", "r", get), bind("a", "Role", "r", "ServiceAccount:robot")}, "a"},
		"a service account of no namespace": {identity{"system:serviceaccount::robot", nil},
			[]runtime.Object{clusterRole("r", "", get), bind("", "ClusterRole", "r", "ServiceAccount:robot")}, ""},

		"a ClusterRole in a Namespace":   {alice, []runtime.Object{clusterRole("r", "", get), bind("a", "ClusterRole", "r", "User:alice")}, "a"},
		"a ClusterRole":                  {alice, []runtime.Object{clusterRole("r", "", get), bind("", "ClusterRole", "r", "User:alice")}, "a b"},
		"a Role for the cluster":         {alice, []runtime.Object{role("a", "r", get), bind("", "Role", "r", "User:alice")}, ""},
		"a missing ClusterRole":          {alice, []runtime.Object{bind("", "ClusterRole", "r", "User:alice")}, ""},
		"names":                          {alice, []runtime.Object{clusterRole("r", "", rule("get", "b", "x")), bind("", "ClusterRole", "r", "User:alice")}, "b"},
		"another name in a Namespace":    {alice, []runtime.Object{clusterRole("r", "", rule("get", "b")), bind("a", "ClusterRole", "r", "User:alice")}, ""},
		"list all":                       {alice, []runtime.Object{clusterRole("r", "", rule("list")), bind("", "ClusterRole", "r", "User:alice")}, "a b"},
		"watch all":                      {alice, []runtime.Object{clusterRole("r", "", rule("watch")), bind("", "ClusterRole", "r", "User:alice")}, "a b"},
		"all verbs":                      {alice, []runtime.Object{clusterRole("r", "", rule("*", "a")), bind("", "ClusterRole", "r", "User:alice")}, "a"},
		"list by name":                   {alice, []runtime.Object{clusterRole("r", "", rule("list,watch", "a")), bind("", "ClusterRole", "r", "User:alice")}, "a"},
		"list by name in a Namespace":    {alice, []runtime.Object{clusterRole("r", "", rule("list,watch", "a")), bind("a", "ClusterRole", "r", "User:alice")}, ""},
		"list in a Namespace":            {alice, []runtime.Object{clusterRole("r", "", rule("list,watch")), bind("a", "ClusterRole", "r", "User:alice")}, ""},
		"update":                         {alice, []runtime.Object{clusterRole("r", "", rule("update,delete")), bind("", "ClusterRole", "r", "User:alice")}, ""},
		"the core group":                 {alice, []runtime.Object{clusterRole("r", "", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}}), bind("", "ClusterRole", "r", "User:alice")}, "a b"},
		"another group":                  {alice, []runtime.Object{clusterRole("r", "", rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"*"}, Verbs: []string{"*"}}), bind("", "ClusterRole", "r", "User:alice")}, ""},
		"other resources":                {alice, []runtime.Object{clusterRole("r", "", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"namespaces/status", "pods"}, Verbs: []string{"*"}}), bind("", "ClusterRole", "r", "User:alice")}, ""},
		"all resources of all groups":    {alice, []runtime.Object{clusterRole("r", "", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get"}}), bind("", "ClusterRole", "r", "User:alice")}, "a b"},
		"aggregated":                     {alice, []runtime.Object{aggregating("r", "", "x"), clusterRole("part", "x", get), bind("a", "ClusterRole", "r", "User:alice")}, "a"},
		"aggregated twice":               {alice, []runtime.Object{aggregating("r", "", "x"), aggregating("s", "x", "y"), clusterRole("part", "y", get), bind("a", "ClusterRole", "r", "User:alice")}, "a"},
		"aggregated in a cycle":          {alice, []runtime.Object{aggregating("r", "y", "x"), aggregating("s", "x", "y"), clusterRole("part", "y", get), bind("a", "ClusterRole", "r", "User:alice")}, "a"},
		"aggregated nothing":             {alice, []runtime.Object{aggregating("r", "", "x"), clusterRole("part", "y", get), bind("a", "ClusterRole", "r", "User:alice")}, ""},
		"the stored rules of aggregates": {alice, []runtime.Object{aggregating("r", "", "x", get), bind("a", "ClusterRole", "r", "User:alice")}, ""},
		"their own rules":                {alice, []runtime.Object{aggregating("r", "x", "x", get), bind("a", "ClusterRole", "r", "User:alice")}, ""},
	} {
		p := newPolicy()
		for i, obj := range append(test.have, namespace("a"), namespace("b")) {
			p.set(obj, int64(i), false)
		}
		v := newView(test.who, labels.Everything())
		v.update(p, 100, true, nil)
		if got := strings.Join(slices.Sorted(maps.Keys(v.now)), " "); got != test.want {
			t.Errorf("%s: %s sees %q, want %q", name, test.who.name, got, test.want)
		}
		for _, obj := range test.have {
			p.set(obj, 0, true)
		}
		if p.sees(alice, "a") {
			t.Errorf("%s: alice sees a without any policy", name)
		}
	}
}

// newHistoryOfAlice returns the view of alice, who gets and loses the Namespaces a and b.
func newHistoryOfAlice(selector labels.Selector) *view {
	p, v := newPolicy(), newView(identity{name: "alice"}, selector)
	at := func(revision int64, obj runtime.Object, deleted bool) {
		p.set(obj, revision, deleted)
		ns, ok := obj.(*v1.Namespace)
		if ok {
			v.update(p, revision, false, map[string]bool{ns.Name: true})
			return
		}
		v.update(p, revision, true, nil)
	}
	at(1, namespace("a"), false)
	at(2, namespace("b", "x"), false)
	at(3, clusterRole("r", "", rule("get", "a", "b")), false)
	at(10, bind("", "ClusterRole", "r", "User:alice"), false) // a and b come into view
	at(11, namespace("b"), false)
	at(12, clusterRole("r", "", rule("get", "b")), false) // a leaves it
	at(13, namespace("a", "x"), false)
	at(14, namespace("b"), true)
	at(15, clusterRole("r", "", rule("get", "a")), false)
	at(30, namespace("c"), false)
	at(31, clusterRole("r", "", rule("get", "c", "a")), false)
	at(32, clusterRole("r", ""), false) // both leave it
	return v
}

// parse parses KIND:NAME@REVISION, or BOOKMARK@REVISION, or END@REVISION for the
// bookmark that closes the initial events. The content is that of the Namespaces above.
func parse(t *testing.T, text string) frame {
	t.Helper()
	at, version, _ := strings.Cut(text, "@")
	revision, err := parseRevision(version)
	if err != nil {
		t.Fatal(err)
	}
	kind, name, _ := strings.Cut(at, ":")
	f := frame{event: event{watch.EventType(kind), object{name: name, revision: revision}}}
	if kind == "END" {
		f.kind, f.initialEnd = watch.Bookmark, true
	}
	if name != "" {
		m := meta("", name)
		if name == "a" && revision >= 13 || name == "b" && revision == 2 {
			m = meta("", name, "x")
		}
		f.object.content = contentOf(&m)
	}
	return f
}

// TestStream checks watches that are right, and some with one error each.
func TestStream(t *testing.T) {
	v := newHistoryOfAlice(labels.Everything())
	for _, test := range []struct {
		query, frames string
		fails         bool
		misses        bool // something at the end
	}{
		{query: "resourceVersion=1", frames: "", misses: true},
		{query: "resourceVersion=1", frames: "ADDED:a@1 ADDED:b@2 MODIFIED:b@11 DELETED:a@12 DELETED:b@14 ADDED:a@13", misses: true},
		{query: "resourceVersion=1", frames: "ADDED:b@2 ADDED:a@1 MODIFIED:b@11 DELETED:a@12 DELETED:b@14", misses: true},
		{query: "resourceVersion=10", frames: "MODIFIED:b@11", misses: true},
		{query: "resourceVersion=10", frames: "ADDED:a@1", fails: true},
		{query: "resourceVersion=9", frames: "ADDED:a@1 MODIFIED:b@11", fails: true},
		{query: "resourceVersion=9", frames: "ADDED:a@1 ADDED:a@1", fails: true},
		{query: "resourceVersion=9", frames: "ADDED:a@10", fails: true},
		{query: "resourceVersion=10", frames: "MODIFIED:b@11 DELETED:a@1", fails: true},
		{query: "resourceVersion=11", frames: "DELETED:a@12 ADDED:a@13", fails: true},
		{query: "resourceVersion=12", frames: "MODIFIED:a@13", fails: true},
		{query: "resourceVersion=15", frames: "", misses: true},
		{query: "resourceVersion=15", frames: "ADDED:a@13", fails: true},
		{query: "resourceVersion=13", frames: "DELETED:b@14 ADDED:a@13 ADDED:c@30 DELETED:a@31 DELETED:c@32"},
		{query: "resourceVersion=31", frames: "DELETED:c@31 DELETED:a@32"},
		{query: "resourceVersion=31", frames: "DELETED:c@32", fails: true}, // and a client that continues there misses a
		{query: "resourceVersion=31", frames: "DELETED:c@31 DELETED:a@31", fails: true},
		{query: "resourceVersion=32", frames: ""},
		// With bookmarks.
		{query: "resourceVersion=1&allowWatchBookmarks=true", frames: "BOOKMARK@3 BOOKMARK@9 ADDED:a@1 ADDED:b@2 BOOKMARK@10 MODIFIED:b@11 BOOKMARK@11 DELETED:a@12 DELETED:b@14 ADDED:a@13 BOOKMARK@15 BOOKMARK@20", misses: true},
		{query: "resourceVersion=9&allowWatchBookmarks=true", frames: "ADDED:a@1 ADDED:b@2 MODIFIED:b@11", fails: true},
		{query: "resourceVersion=9&allowWatchBookmarks=true", frames: "ADDED:a@1 BOOKMARK@10", fails: true},
		{query: "resourceVersion=9&allowWatchBookmarks=true", frames: "ADDED:a@1 ADDED:b@2 BOOKMARK@9", fails: true},
		{query: "resourceVersion=9&allowWatchBookmarks=true", frames: "BOOKMARK@10", fails: true},
		{query: "resourceVersion=9&allowWatchBookmarks=true", frames: "BOOKMARK@8", fails: true},
		{query: "resourceVersion=14&allowWatchBookmarks=true", frames: "ADDED:a@13", misses: true},
		// With initial events.
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:a@13 END@15", misses: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:a@13 END@20 BOOKMARK@21", misses: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:a@1 ADDED:b@2 END@10", misses: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:b@11 DELETED:b@14 END@14", misses: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "END@9", misses: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:a@1", misses: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:a@1 END@10", fails: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:a@1 ADDED:b@11 END@12", fails: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:b@11 END@14", fails: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true", frames: "ADDED:a@13 END@15 END@15", fails: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=11", frames: "ADDED:a@1 ADDED:b@11 END@11", misses: true},
		{query: "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=11", frames: "ADDED:a@1 ADDED:b@2 END@10", fails: true},
	} {
		s, err := newStream(v, newExchange(t, test.query))
		for _, text := range strings.Fields(test.frames) {
			if err == nil {
				err = s.check(parse(t, text))
			}
		}
		if (err != nil) != test.fails {
			t.Errorf("%s: %s: got %v, want an error: %t", test.query, test.frames, err, test.fails)
		} else if err == nil {
			if missing := s.missing(); (missing != nil) != test.misses {
				t.Errorf("%s: %s: missing: %v, want something: %t", test.query, test.frames, missing, test.misses)
			}
		}
	}
}

// TestStreamCutOff checks watches that end among their initial events.
func TestStreamCutOff(t *testing.T) {
	v := newHistoryOfAlice(labels.Everything())
	for frames, possible := range map[string]bool{
		"":                      true,
		"ADDED:b@2":             true,
		"ADDED:b@11 ADDED:a@1":  true,
		"ADDED:b@11 ADDED:a@13": false,
		"ADDED:c@1":             false,
		"ADDED:a@13 ADDED:a@13": false,
	} {
		s, err := newStream(v, newExchange(t, "sendInitialEvents=true&resourceVersion=0"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Fields(frames) {
			if err := s.check(parse(t, text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.finish(20); (err == nil) != possible {
			t.Errorf("%q: got %v, want possible: %t", frames, err, possible)
		}
	}
}

// TestSelector checks that a Namespace leaves the view when the selector no longer
// matches.
func TestSelector(t *testing.T) {
	v := newHistoryOfAlice(labels.SelectorFromSet(labels.Set{"x": "true"}))
	var got []string
	for _, c := range v.changes {
		got = append(got, c.event(true).String())
	}
	want := []string{"ADDED b at 2", "DELETED b at 11", "ADDED a at 13", "DELETED a at 32"}
	for i := range want {
		if len(got) != len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// TestPages checks lists that are right, and some with one error each.
func TestPages(t *testing.T) {
	v := newHistoryOfAlice(labels.Everything())
	type response struct {
		query string
		at    int64
		names string
		next  string
	}
	for name, test := range map[string]struct {
		responses []response
		fails     bool
	}{
		"the latest":             {[]response{{"", 15, "a@13", ""}}, false},
		"the past":               {[]response{{"", 11, "a@1 b@11", ""}}, false},
		"nothing":                {[]response{{"", 9, "", ""}}, false},
		"too much":               {[]response{{"", 9, "a@1", ""}}, true},
		"too little":             {[]response{{"", 11, "b@11", ""}}, true},
		"another version":        {[]response{{"", 11, "a@1 b@2", ""}}, true},
		"another order":          {[]response{{"", 11, "b@11 a@1", ""}}, true},
		"too old":                {[]response{{"resourceVersion=12", 11, "a@1 b@11", ""}}, true},
		"exact":                  {[]response{{"resourceVersion=11&resourceVersionMatch=Exact", 11, "a@1 b@11", ""}}, false},
		"not exact":              {[]response{{"resourceVersion=11&resourceVersionMatch=Exact", 15, "a@13", ""}}, true},
		"two pages":              {[]response{{"", 11, "a@1", "x"}, {"continue=x", 11, "b@11", ""}}, false},
		"an empty page":          {[]response{{"", 11, "", "x"}, {"continue=x", 11, "a@1 b@11", ""}}, false},
		"an incomplete page":     {[]response{{"", 11, "a@1", ""}}, true},
		"a missing page":         {[]response{{"", 11, "a@1", "x"}, {"continue=x", 11, "", ""}}, true},
		"a page of another list": {[]response{{"", 11, "a@1", "x"}, {"continue=x", 12, "b@11", ""}}, true},
	} {
		p := pages{view: v, continued: map[string]page{}}
		var err error
		for _, r := range test.responses {
			list := &listing{revision: r.at, next: r.next}
			for _, text := range strings.Fields(r.names) {
				list.objects = append(list.objects, parse(t, "ADDED:"+text).object)
			}
			if err == nil {
				err = p.check(delivery{newExchange(t, r.query), delivered{list: list}})
			}
		}
		if (err != nil) != test.fails {
			t.Errorf("%s: got %v, want an error: %t", name, err, test.fails)
		}
	}
}

func newExchange(t *testing.T, query string) *exchange {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return &exchange{query: values}
}
