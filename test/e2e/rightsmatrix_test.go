// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/test/harness"
)

// as returns a client that the admin's certificate authenticates, and that
// impersonates a user.
func as(t *testing.T, b *harness.Borough, user string, groups ...string) harness.HTTP {
	t.Helper()
	return harness.NewHTTP(t, impersonate(b.Config(t, "admin"), user, groups...))
}

func impersonate(config *rest.Config, user string, groups ...string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

const rbacAPI = "/apis/rbac.authorization.k8s.io/v1"

// grant binds a ClusterRole to a user, in a Namespace or, if that is empty, everywhere.
func grant(t *testing.T, b *harness.Borough, namespace, role, user string) {
	t.Helper()
	kind, path := "ClusterRoleBinding", rbacAPI+"/clusterrolebindings"
	if namespace != "" {
		kind, path = "RoleBinding", rbacAPI+"/namespaces/"+namespace+"/rolebindings"
	}
	body := fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[{"kind":"User","name":%q}]}`, kind, user, role, user)
	wantAnswer(t, b.HTTP(t).Do(t, http.MethodPost, path, []byte(body), "Content-Type", asJSON), http.StatusCreated)
}

// grantRule gives a user what a rule allows, everywhere. The ClusterRole and its binding
// have the name of the user.
func grantRule(t *testing.T, b *harness.Borough, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := rights(t, b).ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grant(t, b, "", user, user)
}

// TestRightsMatrix sends a request for each verb of each resource that discovery
// shows, as users with different rights. A resource that is added later is denied to
// all of them here until the test says otherwise.
func TestRightsMatrix(t *testing.T) {
	t.Parallel()
	in, other := newNamespace(t, borough), newNamespace(t, borough)
	prefix := in + "-" // of user names: other tests share the server
	for role, namespace := range map[string]string{"view": in, "edit": in, "admin": in, "cluster-admin": "", "system:auth-delegator": ""} {
		grant(t, borough, namespace, role, prefix+role)
	}
	grant(t, borough, other, "admin", prefix+"stranger")
	bindings := rights(t, borough)
	t.Cleanup(func() {
		for _, role := range []string{"cluster-admin", "system:auth-delegator"} {
			if err := bindings.ClusterRoleBindings().Delete(context.Background(), prefix+role, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})

	const tenancy, rbac, authz = "tenancy.borough.io", "rbac.authorization.k8s.io", "authorization.k8s.io"
	read, all := "get list watch", "get list watch create update patch delete deletecollection"
	everyone := rightsOf(map[string]string{
		authz + "/selfsubjectaccessreviews":              "create",
		authz + "/selfsubjectrulesreviews":               "create",
		"authentication.k8s.io/selfsubjectreviews":       "create",
		tenancy + "/namespaces":                          "list watch", // of those that the user may get
		tenancy + "/projects":                            read,         // the same
		"apiextensions.k8s.io/customresourcedefinitions": "list",       // there are none
	})
	view := union(everyone, rightsOf(map[string]string{
		tenancy + "/namespaces": "get", tenancy + "/namespaces/status": "get",
		tenancy + "/limitranges": read, tenancy + "/resourcequotas": read, tenancy + "/pods": read, tenancy + "/pods/status": "get",
		"/events": read, "events.k8s.io/events": read,
	}))
	edit := union(view, rightsOf(map[string]string{tenancy + "/pods": all, "/events": all, "events.k8s.io/events": all, "coordination.k8s.io/leases": all}))
	admin := union(edit, rightsOf(map[string]string{
		authz + "/localsubjectaccessreviews": "create", rbac + "/roles": all, rbac + "/rolebindings": all,
	}))
	delegator := union(everyone, rightsOf(map[string]string{
		"authentication.k8s.io/tokenreviews": "create", authz + "/subjectaccessreviews": "create",
	}))

	requests := discovered(t, borough, in)
	users := map[string]struct {
		client  harness.HTTP
		allowed map[string]bool
	}{
		"anonymous":     {anonymous(t, borough), nil},
		"outsider":      {as(t, borough, prefix+"outsider"), everyone},
		"stranger":      {as(t, borough, prefix+"stranger"), everyone},
		"view":          {as(t, borough, prefix+"view"), view},
		"edit":          {as(t, borough, prefix+"edit"), edit},
		"admin":         {as(t, borough, prefix+"admin"), admin},
		"cluster-admin": {as(t, borough, prefix+"cluster-admin"), keysOf(requests)},
		"delegator":     {as(t, borough, prefix+"system:auth-delegator"), delegator},
	}
	for name, user := range users {
		var got []string
		for right, r := range requests {
			answer := user.client.Open(t, r.method, r.path, []byte(r.body), "Content-Type", r.contentType)
			_ = answer.Body.Close() // a watch would not end
			if answer.StatusCode != http.StatusForbidden {
				got = append(got, right)
			}
			if answer.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s, %s: %d", name, right, answer.StatusCode)
			}
		}
		slices.Sort(got)
		want := slices.Sorted(maps.Keys(user.allowed))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is allowed (-want +got):\n%s", name, diff)
		}
	}
}

type matrixRequest struct{ method, path, body, contentType string }

// discovered returns a request that changes nothing for each verb of each resource, by
// the right that it needs.
func discovered(t *testing.T, b *harness.Borough, namespace string) map[string]matrixRequest {
	t.Helper()
	_, lists, err := b.Client(t).Discovery().ServerGroupsAndResourcesWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]matrixRequest{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			for _, verb := range r.Verbs {
				requests[fmt.Sprintf("%s/%s %s", gv.Group, r.Name, verb)] = requestFor(t, gv, r, verb, namespace)
			}
		}
	}
	if len(requests) < 70 {
		t.Fatalf("discovery shows only %d verbs of resources", len(requests))
	}
	return requests
}

func requestFor(t *testing.T, gv schema.GroupVersion, r metav1.APIResource, verb, namespace string) matrixRequest {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	name := "absent"
	if r.Namespaced {
		path += "/namespaces/" + namespace
	} else if strings.HasPrefix(r.Name, "namespaces") || r.Name == "projects" {
		name = namespace
	}
	resource, subresource, isSubresource := strings.Cut(r.Name, "/")
	path += "/" + resource
	if isSubresource {
		path += "/" + name + "/" + subresource
	}
	object := path
	if !isSubresource {
		object += "/" + name
	}
	const dryRun = "?dryRun=All"
	switch verb {
	case "get":
		return matrixRequest{http.MethodGet, object, "", ""}
	case "list":
		return matrixRequest{http.MethodGet, path, "", ""}
	case "watch":
		return matrixRequest{http.MethodGet, path + "?watch=true", "", ""}
	case "create":
		body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q}`, gv.String(), r.Kind)
		return matrixRequest{http.MethodPost, path + dryRun, body, asJSON}
	case "update":
		return matrixRequest{http.MethodPut, object + dryRun, "{}", asJSON}
	case "patch":
		return matrixRequest{http.MethodPatch, object + dryRun, "{}", "application/merge-patch+json"}
	case "delete":
		return matrixRequest{http.MethodDelete, object + dryRun, "", ""}
	case "deletecollection":
		return matrixRequest{http.MethodDelete, path + dryRun, "", ""}
	}
	t.Fatalf("%s has the verb %s, which the test does not know", r.Name, verb)
	return matrixRequest{}
}

// rightsOf returns a set of rights from lists of verbs.
func rightsOf(verbs map[string]string) map[string]bool {
	rights := map[string]bool{}
	for resource, list := range verbs {
		for verb := range strings.FieldsSeq(list) {
			rights[resource+" "+verb] = true
			if group, name, _ := strings.Cut(resource, "/"); group == "tenancy.borough.io" && coregroup.Shared(name) {
				rights["/"+name+" "+verb] = true
			}
		}
	}
	return rights
}

func union(sets ...map[string]bool) map[string]bool {
	all := map[string]bool{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

func keysOf(requests map[string]matrixRequest) map[string]bool {
	keys := map[string]bool{}
	for key := range requests {
		keys[key] = true
	}
	return keys
}

// TestExistenceDoesNotLeak compares what a user without rights gets for a Namespace
// that exists and for one that does not.
func TestExistenceDoesNotLeak(t *testing.T) {
	t.Parallel()
	exists := newNamespace(t, borough)
	createPod(t, borough, exists, newPod("absent")) // the name in the requests
	grant(t, borough, exists, "view", exists+"-someone")
	missing := strings.Repeat("x", len(exists))
	outsider := as(t, borough, "outsider")
	for _, client := range []harness.HTTP{anonymous(t, borough), outsider} {
		there, notThere := discovered(t, borough, exists), discovered(t, borough, missing)
		for right, r := range there {
			if strings.Contains(right, "self") {
				continue // has no Namespace
			}
			get := func(r matrixRequest) harness.Answer {
				return client.Do(t, r.method, r.path, []byte(r.body), "Content-Type", r.contentType)
			}
			want := http.StatusForbidden
			switch resource, verb, _ := strings.Cut(right, " "); {
			case client == outsider && resource == "apiextensions.k8s.io/customresourcedefinitions":
				want = http.StatusOK // the list, which is empty
			case client != outsider || resource != "/namespaces" && resource != "tenancy.borough.io/namespaces" && resource != "tenancy.borough.io/projects":
			case resource == "tenancy.borough.io/projects" && verb == "get":
				want = http.StatusNotFound
			case verb == "list" || verb == "watch":
				r.path += "?" // may have a query
				answer := client.Do(t, r.method, strings.Replace(r.path, "?", "?timeoutSeconds=1&", 1), nil)
				if wantAnswer(t, answer, http.StatusOK); strings.Contains(string(answer.Body), exists) {
					t.Errorf("%s: %v", right, answer)
				}
				continue
			}
			a, b := get(r), get(notThere[right])
			if a.Code != want || b.Code != a.Code || strings.ReplaceAll(string(a.Body), exists, missing) != string(b.Body) {
				t.Errorf("%s: %v, and where there is no Namespace: %v", right, a, b)
			}
		}
	}
}
