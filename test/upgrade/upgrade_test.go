// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade opens the data of earlier versions with the present binaries.
//
// testdata has a directory for each of these versions, with the files of an embedded
// etcd and the objects that the server of that version returned. hack/upgrade-fixture.sh
// makes one.
package upgrade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

func TestMain(m *testing.M) {
	harness.Main(m, func(m *testing.M) (int, error) { return m.Run(), nil })
}

// TestUpgrade opens each fixture: every object is read as it was, can be changed, and
// has its effect.
func TestUpgrade(t *testing.T) {
	files, err := filepath.Glob("testdata/*/etcd.tar.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no fixtures (%v)", err)
	}
	for _, file := range files {
		f := fixture(filepath.Dir(file))
		t.Run(filepath.Base(string(f)), func(t *testing.T) {
			t.Parallel()
			b := harness.New(t)
			stored, err := f.read(filepath.Join(b.Dir, "etcd"))
			if err != nil {
				t.Fatal(err)
			}
			if err := b.StartServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			http := b.HTTP(t)
			if !t.Run("read", func(t *testing.T) { checkRead(t, http, stored) }) {
				return
			}
			t.Run("rights", func(t *testing.T) { checkRights(t, http) })
			t.Run("quotas", func(t *testing.T) { checkQuotas(t, http) })
			t.Run("template", func(t *testing.T) { checkTemplate(t, http) })
			t.Run("managed fields", func(t *testing.T) { checkManagedFields(t, http) })
			t.Run("write", func(t *testing.T) { checkWrite(t, http, stored) })
			t.Run("termination", func(t *testing.T) {
				if err := b.StartController(t.Context()); err != nil {
					t.Fatal(err)
				}
				checkTermination(t, http)
			})
		})
	}
}

// isBootstrapped reports whether an object is part of the policy that a server brings
// up to date when it starts.
func isBootstrapped(o object) bool {
	return o.Metadata.Labels["kubernetes.io/bootstrapping"] == "rbac-defaults"
}

// checkRead checks that the server returns the same bytes for each object, and has no
// others.
func checkRead(t *testing.T, http harness.HTTP, stored objects) {
	read := 0
	for _, path := range slices.Sorted(maps.Keys(stored)) {
		now := map[string]json.RawMessage{}
		for _, raw := range list(t, http, path) {
			if o := decode(t, raw); !isBootstrapped(o) {
				now[o.path(path)] = raw
			}
		}
		for _, raw := range stored[path] {
			o := decode(t, raw)
			if isBootstrapped(o) {
				continue
			}
			read++
			if got := now[o.path(path)]; !bytes.Equal(got, raw) {
				t.Errorf("%s was\n%s\nand is\n%s", o.path(path), raw, got)
			}
			delete(now, o.path(path))
		}
		for other := range now {
			t.Errorf("%s was not there", other)
		}
	}
	t.Logf("read %d objects in %d lists", read, len(stored))
}

// checkWrite changes an annotation of each object, which must change nothing else.
func checkWrite(t *testing.T, http harness.HTTP, stored objects) {
	const annotation = "example.com/upgraded"
	for _, path := range slices.Sorted(maps.Keys(stored)) {
		for _, raw := range stored[path] {
			o := decode(t, raw)
			if isBootstrapped(o) {
				continue
			}
			before := expect(t, http, "GET", o.path(path), nil, 200)
			after := expect(t, http, "PATCH", o.path(path), fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, path), 200,
				"Content-Type", "application/merge-patch+json")
			if got := decode(t, after.Body).Metadata.Annotations[annotation]; got != path {
				t.Errorf("%s has the annotation %q, want %q", o.path(path), got, path)
			}
			if want, got := without(t, before, annotation), without(t, after, annotation); !reflect.DeepEqual(want, got) {
				t.Errorf("an annotation has changed %s from\n%s\nto\n%s", o.path(path), want, got)
			}
		}
	}
}

// without decodes an object without an annotation and what each write changes.
func without(t *testing.T, answer harness.Answer, annotation string) map[string]any {
	t.Helper()
	var o map[string]any
	answer.JSON(t, &o)
	metadata := o["metadata"].(map[string]any)
	for _, field := range []string{"resourceVersion", "managedFields"} {
		delete(metadata, field)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, annotation)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return o
}

// checkRights checks decisions by the stored policy.
func checkRights(t *testing.T, http harness.HTTP) {
	for _, c := range []struct {
		user, group, verb, namespace string
		allowed                      bool
	}{
		{user: "alice", verb: "delete", namespace: "team-a", allowed: true}, // a RoleBinding to a bootstrapped role
		{user: "alice", verb: "get", namespace: "team-b"},
		{user: "system:serviceaccount:team-b:deployer", verb: "create", namespace: "team-a", allowed: true},
		{group: "auditors", verb: "list", namespace: "team-a", allowed: true}, // by the template
		{group: "auditors", verb: "delete", namespace: "team-a"},
		{user: "bob", verb: "list", namespace: "team-b", allowed: true}, // a ClusterRoleBinding
		{user: "bob", verb: "create", namespace: "team-b"},
	} {
		var review struct{ Status struct{ Allowed bool } }
		expect(t, http, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", fmt.Appendf(nil,
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"groups":[%q],"resourceAttributes":{"verb":%q,"resource":"pods","namespace":%q}}}`,
			c.user, c.group, c.verb, c.namespace), 201).JSON(t, &review)
		if review.Status.Allowed != c.allowed {
			t.Errorf("%s%s may %s Pods in %s: %t, want %t", c.user, c.group, c.verb, c.namespace, review.Status.Allowed, c.allowed)
		}
	}
}

// checkQuotas checks the usage, and that it limits further Pods: web, the worker and the
// Pod that is ending count, the one that is done does not.
func checkQuotas(t *testing.T, http harness.HTTP) {
	used := func() string {
		t.Helper()
		var quota struct {
			Status struct{ Used map[string]string }
		}
		expect(t, http, "GET", "/api/v1/namespaces/team-a/resourcequotas/compute", nil, 200).JSON(t, &quota)
		return fmt.Sprint(quota.Status.Used)
	}
	check := func(want string) {
		t.Helper()
		if got := used(); got != want {
			t.Errorf("the quota has used %s, want %s", got, want)
		}
	}
	const pods = "/api/v1/namespaces/team-a/pods"
	pod := func(name string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"c"}]}}`, name)
	}
	check("map[limits.memory:1792Mi pods:3 requests.cpu:550m]")
	expect(t, http, "POST", pods, pod("new-1"), 201)
	expect(t, http, "POST", pods, pod("new-2"), 201)
	check("map[limits.memory:2304Mi pods:5 requests.cpu:750m]")
	expect(t, http, "POST", pods, pod("new-3"), 403)
	expect(t, http, "DELETE", pods+"/new-1", nil, 200)
	expect(t, http, "DELETE", pods+"/new-2", nil, 200)
	check("map[limits.memory:1792Mi pods:3 requests.cpu:550m]")
}

// checkTemplate checks that the template applies to new Namespaces.
func checkTemplate(t *testing.T, http harness.HTTP) {
	expect(t, http, "POST", "/api/v1/namespaces", []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-c","labels":{"tier":"team"}}}`), 201)
	for _, path := range []string{"/api/v1/namespaces/team-c/limitranges/limits", "/api/v1/namespaces/team-c/resourcequotas/team",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/team-c/rolebindings/auditors"} {
		expect(t, http, "GET", path, nil, 200)
	}
}

// checkManagedFields checks that fields are still owned by those who applied them,
// through either group.
func checkManagedFields(t *testing.T, http harness.HTTP) {
	for _, label := range []string{"api-v1", "apis-tenancy.borough.io-v1"} {
		expect(t, http, "PATCH", "/api/v1/namespaces/team-a/pods/web?fieldManager=another",
			[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"`+label+`":"changed"}}}`), 409,
			"Content-Type", "application/apply-patch+yaml")
	}
}

// checkTermination checks that a Namespace that was Terminating ends when nothing holds
// it any more, and not before.
func checkTermination(t *testing.T, http harness.HTTP) {
	const namespaces = "/apis/tenancy.borough.io/v1/namespaces/"
	for name, release := range map[string]func(){
		"held-by-finalizer": func() {
			expect(t, http, "PATCH", namespaces+"held-by-finalizer/pods/held", []byte(`{"metadata":{"finalizers":null}}`), 200,
				"Content-Type", "application/merge-patch+json")
		},
		"held-by-node": func() {
			expect(t, http, "DELETE", namespaces+"held-by-node/pods/running?gracePeriodSeconds=0", nil, 200)
		},
	} {
		expect(t, http, "GET", namespaces+name, nil, 200)
		release()
		poll.Eventually(t, func() string {
			if code := http.Do(t, "GET", namespaces+name, nil).Code; code != 404 {
				return fmt.Sprintf("GET of %s: %d", name, code)
			}
			return ""
		})
	}
}
