// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/borough-io/borough/test/harness"
)

const (
	asTable     = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	asMetadata  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	asDiscovery = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
	asProtobuf  = "application/vnd.kubernetes.protobuf,application/json"
	watchList   = "?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=300&watch=true"

	accessReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	rulesReviews  = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
)

// startRequest is a request that a client makes when it starts, or shows a Namespace. In
// the path and the body, $ns is the Namespace of a user who may edit it, and $rv its
// resourceVersion.
type startRequest struct {
	client string // one that makes the request
	method string // GET by default
	path   string
	accept string // JSON by default
	body   string
	// admin and user are the status codes that they get.
	admin, user int
}

var startRequests = []startRequest{
	// Connecting.
	{client: "k9s", path: "/version", admin: 200, user: 200},
	{client: "Freelens", path: "/", admin: 200, user: 403},
	{client: "Headlamp", path: "/healthz", admin: 200, user: 200},
	{client: "Headlamp", method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", body: `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`, admin: 201, user: 201},
	{client: "Headlamp", method: "POST", path: rulesReviews, body: `{"spec": {"namespace": "default"}}`, admin: 201, user: 201},
	{client: "Freelens", method: "POST", path: rulesReviews, body: `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "$ns"}}`, admin: 201, user: 201},
	{client: "Freelens", method: "POST", path: accessReviews, body: `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"namespace": "kube-system", "resource": "*", "verb": "create"}}}`, admin: 201, user: 201},
	{client: "Freelens", method: "POST", path: accessReviews, body: `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"resource": "*", "verb": "watch"}}}`, admin: 201, user: 201},
	{client: "k9s", method: "POST", path: accessReviews, body: `{"spec": {"resourceAttributes": {"version": "v1", "resource": "namespaces", "verb": "list"}}}`, admin: 201, user: 201},
	{client: "k9s", method: "POST", path: accessReviews, accept: asProtobuf, body: `{"spec": {"resourceAttributes": {"namespace": "$ns", "version": "v1", "resource": "pods", "verb": "list"}}}`, admin: 201, user: 201},
	{client: "k9s", method: "POST", path: accessReviews, body: `{"spec": {"resourceAttributes": {"group": "metrics.k8s.io", "version": "v1beta1", "resource": "nodes", "verb": "list"}}}`, admin: 201, user: 201},

	// Discovery.
	{client: "Headlamp", path: "/api", accept: asDiscovery, admin: 200, user: 200},
	{client: "Headlamp", path: "/apis", accept: asDiscovery, admin: 200, user: 200},
	{client: "controller-runtime", path: "/api", accept: asDiscovery + ",application/json", admin: 200, user: 200},
	{client: "Freelens", path: "/api", admin: 200, user: 200},
	{client: "Freelens", path: "/apis", admin: 200, user: 200},
	{client: "Freelens", path: "/api/v1", admin: 200, user: 200},
	{client: "controller-runtime", path: "/apis/rbac.authorization.k8s.io/v1", admin: 200, user: 200},
	{client: "controller-runtime", path: "/apis/apps/v1", admin: 404, user: 404},
	{client: "k9s", path: "/apis/metrics.k8s.io", admin: 404, user: 404},
	{client: "Headlamp", path: "/openapi/v2", admin: 200, user: 200},
	{client: "kubectl", path: "/openapi/v3", admin: 200, user: 200},
	{client: "kubectl", path: "/openapi/v3/api/v1", admin: 200, user: 200},

	// Namespaces. A user sees those that she may get.
	{client: "kubens", path: "/api/v1/namespaces?limit=500", accept: asProtobuf, admin: 200, user: 200},
	{client: "kubens", path: "/api/v1/namespaces/$ns", accept: asProtobuf, admin: 200, user: 200},
	{client: "kubens", path: "/api/v1/namespaces/nowhere", admin: 404, user: 403},
	{client: "Freelens", path: "/api/v1/namespaces/default", admin: 200, user: 403},
	{client: "k9s", path: "/api/v1/namespaces", accept: asTable, admin: 200, user: 200},
	{client: "k9s", path: "/api/v1/namespaces?limit=500&resourceVersion=0", admin: 200, user: 200},
	{client: "k9s", path: "/api/v1/namespaces" + watchList, admin: 200, user: 200},
	{client: "controller-runtime", path: "/api/v1/namespaces?limit=500&resourceVersion=0", accept: asMetadata, admin: 200, user: 200},
	{client: "Headlamp", path: "/api/v1/namespaces?watch=1&resourceVersion=$rv", admin: 200, user: 200},

	// Pods of all Namespaces, and of one.
	{client: "Headlamp", path: "/api/v1/pods", admin: 200, user: 403},
	{client: "Headlamp", path: "/api/v1/pods?watch=1&resourceVersion=0", admin: 200, user: 403},
	{client: "k9s", path: "/api/v1/pods" + watchList, admin: 200, user: 403},
	{client: "k9s", path: "/api/v1/namespaces/$ns/pods", accept: asTable, admin: 200, user: 200},
	{client: "k9s", path: "/api/v1/namespaces/$ns/pods" + watchList, accept: asProtobuf, admin: 200, user: 200},
	{client: "controller-runtime", path: "/api/v1/namespaces/$ns/pods?limit=500&resourceVersion=0", accept: asProtobuf, admin: 200, user: 200},
	{client: "Headlamp", path: "/api/v1/namespaces/$ns/pods?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dweb", admin: 200, user: 200},
	{client: "k9s", path: "/api/v1/namespaces/$ns/pods/web", admin: 404, user: 404},
	{client: "k9s", path: "/api/v1/namespaces/$ns/pods/web/log?tailLines=100", admin: 404, user: 403},

	// The other kinds of a Namespace.
	{client: "Headlamp", path: "/api/v1/namespaces/$ns/limitranges", admin: 200, user: 200},
	{client: "Headlamp", path: "/api/v1/namespaces/$ns/resourcequotas", admin: 200, user: 200},
	{client: "Freelens", path: "/api/v1/limitranges", admin: 200, user: 403},
	{client: "Freelens", path: "/apis/rbac.authorization.k8s.io/v1/clusterroles", admin: 200, user: 403},
	{client: "Freelens", path: "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/rolebindings", admin: 200, user: 403},
	{client: "k9s", path: "/apis/tenancy.borough.io/v1/namespaces/$ns/pods", accept: asTable, admin: 200, user: 200},

	// Kinds that are not served.
	{client: "k9s", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=500&resourceVersion=0", admin: 200, user: 200},
	{client: "k9s", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" + watchList, admin: 404, user: 403},
	{client: "k9s", path: "/api/v1/nodes" + watchList, admin: 404, user: 403},
	{client: "k9s", path: "/apis/metrics.k8s.io/v1beta1/nodes", admin: 404, user: 403},
	{client: "k9s", path: "/apis/metrics.k8s.io/v1beta1/namespaces/$ns/pods", admin: 404, user: 403},
	{client: "Freelens", path: "/api/v1/nodes", admin: 404, user: 403},
	{client: "Freelens", path: "/api/v1/componentstatuses", admin: 404, user: 403},
	{client: "Freelens", path: "/api/v1/namespaces/$ns/secrets", admin: 404, user: 403},
	{client: "Freelens", path: "/api/v1/namespaces/$ns/configmaps", admin: 404, user: 403},
	{client: "Headlamp", path: "/api/v1/namespaces/$ns/services", admin: 404, user: 403},
	{client: "Headlamp", path: "/apis/apps/v1/deployments", admin: 404, user: 403},
	{client: "Headlamp", path: "/apis/apps/v1/namespaces/$ns/deployments?watch=1&resourceVersion=0", admin: 404, user: 403},
	{client: "Headlamp", path: "/apis/batch/v1/cronjobs", admin: 404, user: 403},
	{client: "Freelens", path: "/apis/networking.k8s.io/v1/namespaces/$ns/ingresses", admin: 404, user: 403},
	{client: "Freelens", path: "/apis/storage.k8s.io/v1/storageclasses", admin: 404, user: 403},
}

// TestClientStart sends what dashboards and controllers of Kubernetes request when they
// start. The paths are from their sources.
func TestClientStart(t *testing.T) {
	t.Parallel()
	ns, admin := newNamespace(t, borough), borough.HTTP(t)
	grant(t, borough, ns, "edit", ns+"-user")
	user := as(t, borough, ns+"-user")
	created, err := borough.Client(t).TenancyV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("$ns", ns, "$rv", created.ResourceVersion)
	for _, request := range startRequests {
		method := request.method
		if method == "" {
			method = http.MethodGet
		}
		headers := []string{"Accept", "application/json", "Content-Type", "application/json"}
		if request.accept != "" {
			headers[1] = request.accept
		}
		path, body := replace.Replace(request.path), replace.Replace(request.body)
		for _, sender := range []struct {
			name string
			http harness.HTTP
			code int
		}{{"the admin", admin, request.admin}, {"the user", user, request.user}} {
			answer := sendAtStart(t, sender.http, method, path, body, headers)
			got, status := answer.Code, answer.Status()
			if got != sender.code {
				t.Errorf("%s, %s: %s %s: status code %d, want %d: %s", request.client, sender.name, method, request.path, got, sender.code, status.Message)
			}
			// Paths of groups that do not exist have no Status in Kubernetes either.
			noGroup := got == http.StatusNotFound && string(answer.Body) == "404 page not found\n" && strings.HasPrefix(path, "/apis/")
			if got >= 400 && !noGroup && (int(status.Code) != got || status.Message == "" || status.Reason == metav1.StatusReasonUnknown) {
				t.Errorf("%s, %s: %s %s: not an error of the API: %s", request.client, sender.name, method, request.path, answer)
			}
		}
	}
}

// sendAtStart returns the response. It does not wait for the events of a watch.
func sendAtStart(t *testing.T, client harness.HTTP, method, path, body string, headers []string) harness.Answer {
	t.Helper()
	if strings.Contains(path, "watch=") {
		response := client.Open(t, method, path, nil, headers...)
		_ = response.Body.Close() // a watch would not end
		if response.StatusCode < 400 {
			return harness.Answer{Code: response.StatusCode, Header: response.Header}
		}
	}
	return client.Do(t, method, path, []byte(body), headers...)
}

// TestDiscoveryIsServed sends a request for each verb of each resource in discovery,
// which must be the same in its two formats.
func TestDiscoveryIsServed(t *testing.T) {
	t.Parallel()
	admin := borough.HTTP(t)
	for right, r := range discovered(t, borough, newNamespace(t, borough)) {
		answer := sendAtStart(t, admin, r.method, r.path, r.body, []string{"Content-Type", r.contentType})
		code, status := answer.Code, answer.Status()
		// A 404 names the object that does not exist, or there is no such path.
		noPath := code == http.StatusNotFound && (status.Details == nil || status.Details.Name != "absent")
		if noPath || code == http.StatusMethodNotAllowed || code >= 500 {
			t.Errorf("%s: %s %s: %s", right, r.method, r.path, answer)
		}
	}

	_, lists, err := borough.Client(t).Discovery().ServerGroupsAndResourcesWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, aggregated := range lists {
		path := "/apis/" + aggregated.GroupVersion
		if aggregated.GroupVersion == "v1" {
			path = "/api/v1"
		}
		var list metav1.APIResourceList
		wantAnswer(t, admin.Do(t, http.MethodGet, path, nil), http.StatusOK).JSON(t, &list)
		wantEqual(t, path, verbsOf(&list), verbsOf(aggregated))
	}
}

func verbsOf(list *metav1.APIResourceList) map[string]string {
	verbs := map[string]string{}
	for _, resource := range list.APIResources {
		verbs[resource.Name] = fmt.Sprint(resource.Kind, resource.Namespaced, resource.ShortNames, slices.Sorted(slices.Values(resource.Verbs)))
	}
	return verbs
}

// TestNoCustomResources lists the CustomResourceDefinitions, of which there are none.
func TestNoCustomResources(t *testing.T) {
	t.Parallel()
	if _, stderr, err := borough.TryKubectl(t, "", "get", "crds"); err != nil || !strings.Contains(stderr, "No resources found") {
		t.Errorf("kubectl get crds: %v, %s", err, stderr)
	}
	groups, err := restmapper.GetAPIGroupResources(borough.Client(t).Discovery())
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	if _, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind); err != nil { // as Terraform does
		t.Error(err)
	}
}
