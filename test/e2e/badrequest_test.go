// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// apiRequest is a request without its query.
type apiRequest struct{ method, path, contentType, body string }

// validRequests returns a valid request for each verb of each resource and
// subresource, for the Namespace ns with the Pod "there".
func validRequests(ns string) []apiRequest {
	const (
		apply      = "application/apply-patch+yaml"
		merge      = "application/merge-patch+json"
		strategic  = "application/strategic-merge-patch+json"
		jsonPatch  = "application/json-patch+json"
		labels     = `{"metadata":{"labels":{"a":"b"}}}`
		limitRange = `{"apiVersion":"tenancy.borough.io/v1","kind":"LimitRange","metadata":{"name":"l"}}`
	)
	there := strings.Replace(podJSON, `"name":"p"`, `"name":"there"`, 1)
	namespace := fmt.Sprintf(`{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":%q},"spec":{"finalizers":["kubernetes"]}}`, ns)
	in := api + "/namespaces/" + ns
	return []apiRequest{
		{"GET", api + "/namespaces", "", ""}, {"GET", in, "", ""}, {"GET", in + "/status", "", ""},
		{"GET", api + "/pods", "", ""}, {"GET", in + "/pods", "", ""}, {"GET", in + "/pods/there", "", ""}, {"GET", in + "/pods/there/status", "", ""},
		{"GET", in + "/pods/there/resize", "", ""}, {"GET", in + "/pods/there/ephemeralcontainers", "", ""},
		{"GET", in + "/limitranges", "", ""}, {"GET", in + "/limitranges/l", "", ""},
		{"GET", api + "/watch/namespaces", "", ""}, {"GET", api + "/watch/namespaces/" + ns, "", ""}, {"GET", api + "/watch/namespaces/" + ns + "/pods/there", "", ""},
		{"POST", api + "/namespaces", asJSON, `{"metadata":{"generateName":"e2e-"}}`}, {"POST", in + "/pods", asJSON, podJSON}, {"POST", in + "/limitranges", asJSON, limitRange},
		{"PUT", in, asJSON, namespace}, {"PUT", in + "/status", asJSON, namespace}, {"PUT", in + "/finalize", asJSON, namespace},
		{"PUT", in + "/pods/there", asJSON, there}, {"PUT", in + "/pods/there/status", asJSON, there}, {"PUT", in + "/pods/there/resize", asJSON, there},
		{"PUT", in + "/pods/there/ephemeralcontainers", asJSON, there}, {"PUT", in + "/limitranges/l", asJSON, limitRange},
		{"POST", in + "/pods/there/binding", asJSON, `{"metadata":{"name":"there"},"target":{"name":"n"}}`},
		{"POST", in + "/namespacepurges", asJSON, `{"metadata":{"name":"x"},"spec":{"uid":"x"}}`},
		{"PATCH", in, merge, labels}, {"PATCH", in + "/status", merge, labels}, {"PATCH", in + "/pods/there", strategic, labels}, {"PATCH", in + "/pods/there/status", strategic, labels},
		{"PATCH", in + "/pods/there/resize", merge, labels}, {"PATCH", in + "/pods/there/ephemeralcontainers", merge, labels},
		{"PATCH", in + "/limitranges/l", apply, limitRange}, {"PATCH", in + "/pods/there", jsonPatch, `[{"op":"test","path":"/kind","value":"Pod"}]`},
		{"DELETE", api + "/namespaces/not-there", asJSON, ""}, {"DELETE", in + "/pods/there", asJSON, ""}, {"DELETE", in + "/limitranges", asJSON, ""}, {"DELETE", in + "/pods", asJSON, ""},
	}
}

// invalidQueries are queries with one invalid parameter each.
var invalidQueries = []string{
	"resourceVersion=abc", "resourceVersion=-1", "resourceVersion=1.5", "resourceVersion=99999999999999999999999", "resourceVersion=%00", "resourceVersion=1&resourceVersion=abc",
	"resourceVersionMatch=Exact", "resourceVersionMatch=abc", "resourceVersionMatch=Exact&resourceVersion=0", "resourceVersionMatch=Exact&resourceVersion=abc", "resourceVersionMatch=Exact&resourceVersion=1",
	"limit=-1", "limit=1e9", "limit=9223372036854775807", "limit=99999999999999999999", "limit=1&continue=abc", "continue=%00", "continue=eyJydiI6MX0", "continue=e30",
	"continue=" + continueToken(`{"v":"meta.k8s.io/v1","rv":-5,"start":"../a"}`), "continue=" + continueToken(`{"v":"meta.k8s.io/v1","rv":-1,"start":""}`),
	"continue=" + continueToken(`{"v":"meta.k8s.io/v1","rv":1,"start":"a/b/c\u0000"}`), "continue=" + continueToken(`{"v":"meta.k8s.io/v1","rv":-9223372036854775808,"start":"a"}`),
	"continue=" + continueToken(`{"v":"meta.k8s.io/v1","rv":-1,"start":"a"}`) + "&resourceVersion=1", "continue=" + continueToken(`{"v":"meta.k8s.io/v2"}`),
	"timeoutSeconds=abc", "timeoutSeconds=-1", "timeoutSeconds=99999999999999999999", "timeout=abc", "timeout=-1s", "timeout=9999h",
	"watch=abc", "watch=true&sendInitialEvents=abc", "watch=true&sendInitialEvents=true", "sendInitialEvents=true", "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=abc",
	"watch=true&resourceVersion=abc", "watch=true&resourceVersion=-1", "watch=true&continue=abc", "watch=true&fieldSelector=a", "allowWatchBookmarks=abc",
	"fieldSelector=%00", "fieldSelector=a", "fieldSelector=metadata.name%3D", "fieldSelector=metadata.name%3D..", "fieldSelector=metadata.name%3Da%25b", "fieldSelector=metadata.name%3Da%2Fb",
	"fieldSelector=metadata.namespace%3D..", "fieldSelector=metadata.name%3Da,metadata.name%3Db", "fieldSelector=metadata.name%21%3D..", "fieldSelector=metadata.name%3D%5C", "watch=true&fieldSelector=metadata.name%3D..",
	"labelSelector=%00", "labelSelector=a%20in%20(", "labelSelector=a%3D%3D%3D", "labelSelector=!!", "labelSelector=a%3E1,a%3Cb", "shardSelector=abc", "shardSelector=%00",
	"pretty=abc", "dryRun=abc", "dryRun=All&dryRun=All", "dryRun=", "fieldManager=%00", "fieldManager=" + strings.Repeat("a", 200), "fieldManager=f&force=abc", "force=true", "fieldValidation=abc",
	"propagationPolicy=abc", "propagationPolicy=Orphan&orphanDependents=true", "gracePeriodSeconds=abc", "gracePeriodSeconds=-1", "gracePeriodSeconds=9223372036854775807", "orphanDependents=abc",
	"preconditions=abc", "uid=abc", "includeObject=abc", "%zz=%zz", "a;b", "%00=%00",
}

func continueToken(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// wantNoServerError fails the test if the response has a code of 500 or more.
func wantNoServerError(t *testing.T, http harness.HTTP, request apiRequest, query string, headers ...string) {
	t.Helper()
	path := request.path
	if query != "" {
		path += "?" + query
	}
	if request.contentType != "" {
		headers = append([]string{"Content-Type", request.contentType}, headers...)
	}
	// The body of a watch does not end, so it is read only on an error.
	response := http.Open(t, request.method, path, []byte(request.body), headers...)
	defer response.Body.Close()
	if response.StatusCode >= 500 {
		body, _ := io.ReadAll(response.Body)
		// A resourceVersion that another server may have written is a timeout,
		// after which the client must retry.
		status := harness.Answer{Code: response.StatusCode, Body: body}.Status()
		if status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool { return cause.Type == metav1.CauseTypeResourceVersionTooLarge }) {
			return
		}
		t.Errorf("%s %.300s %q: got %d %s", request.method, path, headers, response.StatusCode, body)
	}
}

// TestInvalidQueries sends each request with each invalid query. The server must
// not return an internal error.
func TestInvalidQueries(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	for _, request := range validRequests(ns) {
		createThere(t, http, ns)
		for _, query := range invalidQueries {
			wantNoServerError(t, http, request, query)
		}
	}
}

// TestRandomQueries does the same with random mutations of these queries.
func TestRandomQueries(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	requests := validRequests(ns)
	createThere(t, http, ns)
	queries := make([][]byte, len(invalidQueries))
	for i, query := range invalidQueries {
		queries[i] = []byte(query)
	}
	for range 500 { // make attack sends many more
		values, _ := url.ParseQuery(string(mutate(random, queries)))
		wantNoServerError(t, http, requests[random.IntN(len(requests))], values.Encode())
	}
}

// createThere creates the Pod "there" of validRequests, if it does not exist.
func createThere(t *testing.T, http harness.HTTP, ns string) {
	t.Helper()
	answer := http.Do(t, "POST", api+"/namespaces/"+ns+"/pods", []byte(strings.Replace(podJSON, `"name":"p"`, `"name":"there"`, 1)), "Content-Type", asJSON)
	if answer.Code != 201 && answer.Code != 409 {
		t.Fatalf("create the Pod: %v", answer)
	}
}

// TestInvalidHeaders sends each request with unsuitable headers and methods.
func TestInvalidHeaders(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	createThere(t, http, ns)
	types := []string{
		"", "*/*", ";", "text/plain", "application/", "application/json;charset=\xff", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Foo;v=v9;g=x",
		"application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq", "application/json-patch+json", "application/apply-patch+yaml", "application/x-www-form-urlencoded", "multipart/form-data",
	}
	for _, request := range validRequests(ns) {
		for _, contentType := range types {
			wantNoServerError(t, http, request, "", "Accept", contentType)
			wantNoServerError(t, http, request, "", "Content-Type", contentType)
		}
		for _, encoding := range []string{"gzip", "br", "identity;q=0", "\xff"} {
			wantNoServerError(t, http, request, "", "Accept-Encoding", encoding)
			wantNoServerError(t, http, request, "", "Content-Encoding", encoding)
		}
		for _, method := range []string{"HEAD", "OPTIONS", "TRACE", "FOO", "GET", "POST", "PUT", "PATCH"} {
			request.method = method
			wantNoServerError(t, http, request, "")
		}
	}
}

// TestInvalidNamesInPaths sends requests for names that no Namespace or object
// can have.
func TestInvalidNamesInPaths(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	createThere(t, http, ns)
	for _, name := range []string{"%2e%2e", ".", "a%25b"} {
		for _, request := range validRequests(name) {
			// A watch of one Namespace watches all of them with a field selector.
			if strings.Contains(request.path, "/namespaces/"+name) && request.path != api+"/watch/namespaces/"+name {
				wantStatus(t, http.Do(t, request.method, request.path, []byte(request.body), "Content-Type", request.contentType), 400, "")
			}
		}
		t.Run(name, func(t *testing.T) {
			pods := api + "/namespaces/" + name + "/pods"
			wantStatus(t, http.Do(t, "GET", pods, nil), 400, "Namespace parameter invalid: ")
			wantStatus(t, http.Do(t, "GET", pods+"?watch=true", nil), 400, "Namespace parameter invalid: ")
			wantStatus(t, http.Do(t, "GET", api+"/namespaces/"+name, nil), 400, "Name parameter invalid: ")
			wantStatus(t, http.Do(t, "GET", "/api/v1/namespaces/"+name, nil), 400, "Name parameter invalid: ")
		})
	}
	for _, group := range []string{api, "/api/v1"} {
		answer := http.Do(t, "POST", group+"/namespaces//pods", []byte(`{"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`))
		wantStatus(t, answer, 422, `"p" is invalid: metadata.namespace: Required value`)
	}
	for _, name := range []string{"%2e%2e", ".", "a%25b", "A_", "%00", "%20", "%ff", "%E2%80%A8", "a:b", "%5c", "a%2Fb", "%2F", strings.Repeat("a", 300), strings.Repeat("a", 100_000)} {
		for _, request := range validRequests(name) {
			wantNoServerError(t, http, request, "")
		}
		for _, request := range validRequests(ns) {
			request.path = strings.Replace(request.path, "/there", "/"+name, 1)
			request.body = ""
			wantNoServerError(t, http, request, "")
		}
	}
}

// TestLongPaths requests paths that are longer than those of any object.
func TestLongPaths(t *testing.T) {
	t.Parallel()
	for _, client := range []harness.HTTP{borough.HTTP(t), anonymous(t, borough)} {
		wantStatus(t, client.Do(t, "GET", "/"+strings.Repeat("a", 5000), nil), 414, "the path has 5001 bytes, more than the maximum of 1200")
		wantStatus(t, client.Do(t, "PATCH", api+"/namespaces/"+strings.Repeat("a", 100_000)+"/pods/x", []byte("{}")), 414, "the path has ")
	}
	events := "/api/v1/namespaces/" + strings.Repeat("a", 254) + "/events"
	wantStatus(t, borough.HTTP(t).Do(t, "GET", events, nil), 400, "Namespace parameter invalid: ")
	wantStatus(t, borough.HTTP(t).Do(t, "PATCH", events+"/x", []byte("{}"), "Content-Type", "application/merge-patch+json"), 400, "Namespace parameter invalid: ")
}

// TestUnknownPaths requests paths that the server does not have.
func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/foo", "/API/v1/pods", "/healthz/foo", "/apis/foo", "/apis/foo/v1", "/apis/foo/v1/bars"} {
		answer := wantAnswer(t, borough.HTTP(t).Do(t, "GET", path, nil), 404)
		wantEqual(t, path, string(answer.Body), "404 page not found\n")
	}
}

// TestObjectTooLarge writes an object that is too large for etcd in every way
// that an object can be written.
func TestObjectTooLarge(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	createThere(t, http, ns)
	in := api + "/namespaces/" + ns
	x := strings.Repeat("x", 1600<<10)
	env := `,"env":[{"name":"E","value":"` + x + `"}]`
	there := strings.Replace(podJSON, `"name":"p"`, `"name":"there"`, 1)
	withEnv := func(pod string) string { return strings.Replace(pod, `"image":"i:1"`, `"image":"i:1"`+env, 1) }
	half := strings.Replace(podJSON, `"name":"p"`, `"name":"half"`, 1)
	half = strings.Replace(half, `"image":"i:1"`, `"image":"i:1","env":[{"name":"E","value":"`+x[:1400<<10]+`"}]`, 1)
	wantAnswer(t, http.Do(t, "POST", in+"/pods", []byte(half), "Content-Type", asJSON), 201)
	labels := map[string]string{}
	for i := range 1000 {
		labels[fmt.Sprintf("example.com/%d", i)] = x[:60]
	}
	manyLabels := string(toJSON(t, map[string]any{"metadata": map[string]any{"labels": labels, "annotations": map[string]string{"a": x[:200<<10]}}}))
	finalizer := strings.Repeat(strings.Repeat("d", 62)+".", 3) + "example.com/" + x[:60]
	manyFinalizers := strings.TrimSuffix(strings.Repeat(`"`+finalizer+`",`, 6_500), ",")
	for _, test := range []struct{ method, path, contentType, body string }{
		{"POST", in + "/pods", asJSON, withEnv(podJSON)},
		{"PATCH", in + "/pods/applied?fieldManager=f", "application/apply-patch+yaml", withEnv(strings.Replace(podJSON, `"name":"p"`, `"name":"applied"`, 1))},
		{"PUT", in + "/pods/there/status", asJSON, strings.TrimSuffix(there, "}") + `,"status":{"message":"` + x + `"}}`},
		{"PATCH", in + "/pods/there/status", "application/merge-patch+json", `{"status":{"message":"` + x + `"}}`},
		{"PATCH", in + "/pods/there/status", "application/strategic-merge-patch+json", `{"status":{"message":"` + x + `"}}`},
		{"PATCH", in + "/pods/there/ephemeralcontainers", "application/strategic-merge-patch+json", `{"spec":{"ephemeralContainers":[{"name":"e","image":"i:1"` + env + `}]}}`},
		{"PATCH", in + "/pods/half", "application/merge-patch+json", manyLabels},
		{"PUT", in + "/status", asJSON, `{"metadata":{"name":"` + ns + `"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active","conditions":[{"type":"T","status":"True","message":"` + x + `"}]}}`},
		{"POST", api + "/namespaces", asJSON, `{"metadata":{"generateName":"e2e-"},"spec":{"finalizers":[` + manyFinalizers + `]}}`},
		{"PUT", in + "/finalize", asJSON, `{"metadata":{"name":"` + ns + `"},"spec":{"finalizers":[` + manyFinalizers + `]}}`},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			wantStatus(t, http.Do(t, test.method, test.path, []byte(test.body), "Content-Type", test.contentType), 413, "the object is too large for etcd")
		})
	}
}

// TestManagedFieldsTooLarge writes Pods that are too large for etcd only with their managed
// fields. As in Kubernetes, they are written without.
func TestManagedFieldsTooLarge(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	in := api + "/namespaces/" + ns
	wantAnswer(t, http.Do(t, "POST", in+"/resourcequotas", []byte(`{"apiVersion":"tenancy.borough.io/v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"pods":"10"}}}`), "Content-Type", asJSON), 201)
	createThere(t, http, ns)
	labels := map[string]string{}
	for i := range 4000 {
		labels[fmt.Sprintf("%sexample.com/%d", strings.Repeat(strings.Repeat("d", 62)+".", 3), i)] = ""
	}
	metadata := `"metadata":{"labels":` + string(toJSON(t, labels)) + `,`
	labelled := func(name string) string {
		return strings.Replace(podJSON, `"metadata":{"name":"p"`, metadata+`"name":"`+name+`"`, 1)
	}
	for _, test := range []struct {
		method, path, contentType, body string
		code                            int
	}{
		{"POST", "/pods", asJSON, labelled("p"), 201},
		{"PUT", "/pods/there", asJSON, labelled("there"), 200},
		{"PATCH", "/pods/there", "application/merge-patch+json", `{` + metadata + `"annotations":{"a":"b"}}}`, 200},
	} {
		t.Run(test.method, func(t *testing.T) {
			answer := wantAnswer(t, http.Do(t, test.method, in+test.path, []byte(test.body), "Content-Type", test.contentType), test.code)
			var pod v1.Pod
			if err := json.Unmarshal(answer.Body, &pod); err != nil {
				t.Fatal(err)
			}
			if len(pod.Labels) != len(labels) || len(pod.ManagedFields) != 0 {
				t.Errorf("the Pod has %d labels, want %d, and %d managed fields, want none", len(pod.Labels), len(labels), len(pod.ManagedFields))
			}
		})
	}
	// An apply would no longer know what it manages.
	answer := http.Do(t, "PATCH", in+"/pods/applied?fieldManager=f", []byte(labelled("applied")), "Content-Type", "application/apply-patch+yaml")
	wantStatus(t, answer, 413, "the object is too large for etcd")

	quota, err := borough.Client(t).TenancyV1().ResourceQuotas(ns).Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if used := quota.Status.Used["pods"]; used.Value() != 2 {
		t.Errorf("%v Pods are charged, want 2", used.Value())
	}
}

// TestLongNames writes RBAC objects with the longest names, in a Namespace with a long name.
func TestLongNames(t *testing.T) {
	t.Parallel()
	client := borough.HTTP(t)
	ns := strings.Repeat("n", 63)
	wantAnswer(t, client.Do(t, "POST", api+"/namespaces", []byte(`{"metadata":{"name":"`+ns+`"}}`)), 201)
	roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/rolebindings"
	for _, name := range []string{strings.Repeat("x", 1000), strings.Repeat("\u5b57", 333), strings.Repeat("<", 111)} {
		body := []byte(`{"metadata":{"name":"` + name + `"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`)
		path := roles + "/" + url.PathEscape(name)
		wantAnswer(t, client.Do(t, "POST", roles, body), 201)
		wantAnswer(t, client.Do(t, "GET", path, nil), 200)
		wantAnswer(t, client.Do(t, "DELETE", path, nil), 200)
		wantAnswer(t, client.Do(t, "GET", path, nil), 404)
	}
	long := []byte(`{"metadata":{"name":"` + strings.Repeat("<", 112) + `"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`)
	wantStatus(t, client.Do(t, "POST", roles, long), 422, "has 1008 bytes when it is escaped, more than the maximum of 1000")
}
