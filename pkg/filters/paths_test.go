// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestNamespaceObjectsAreClusterScoped(t *testing.T) {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}
	const group = "/apis/tenancy.borough.io/v1"
	for path, want := range map[string]struct{ namespace, name, resource, subresource string }{
		group + "/namespaces":                         {"", "", "namespaces", ""},
		group + "/namespaces/foo":                     {"", "foo", "namespaces", ""},
		group + "/namespaces/foo/status":              {"", "foo", "namespaces", "status"},
		group + "/namespaces/foo/finalize":            {"", "foo", "namespaces", "finalize"},
		group + "/watch/namespaces/foo":               {"", "foo", "namespaces", ""},
		group + "/namespaces/foo/pods":                {"foo", "", "pods", ""},
		group + "/namespaces/foo/pods/bar/binding":    {"foo", "bar", "pods", "binding"},
		"/apis/another.group/v1/namespaces/foo":       {"foo", "foo", "namespaces", ""},
		"/apis/another.group/v1/namespaces/foo/pods/": {"foo", "", "pods", ""},
	} {
		t.Run(path, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, path, nil)
			info, err := resolver.NewRequestInfo(req)
			if err != nil {
				t.Fatal(err)
			}
			before := *info
			var seen *request.RequestInfo
			WithClusterScopedNamespaces(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				seen, _ = request.RequestInfoFrom(req.Context())
			})).ServeHTTP(httptest.NewRecorder(), req.WithContext(request.WithRequestInfo(req.Context(), info)))

			if seen.Namespace != want.namespace || seen.Name != want.name || seen.Resource != want.resource || seen.Subresource != want.subresource {
				t.Errorf("got namespace %q, name %q, %s/%s", seen.Namespace, seen.Name, seen.Resource, seen.Subresource)
			}
			if info.Namespace != before.Namespace {
				t.Error("what authorization and audit hold was changed")
			}
		})
	}
}

// TestLongQuery checks that the log gets the beginning of a long query, and everything else all
// of it.
func TestLongQuery(t *testing.T) {
	for _, n := range []int{0, 100, maxLoggedURI, 100 * maxLoggedURI} {
		query := "labelSelector=" + strings.Repeat("x", n)
		req := httptest.NewRequest(http.MethodGet, "/api/v1/pods?"+query, nil)
		uri := req.RequestURI
		served := false
		WithLimitedRequestLine(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			served = true
			if req.URL.RawQuery != query {
				t.Errorf("%d bytes: got a query of %d bytes, want %d", n, len(req.URL.RawQuery), len(query))
			}
			if logged := strings.TrimSuffix(req.RequestURI, "..."); !strings.HasPrefix(uri, logged) || len(logged) != min(len(uri), maxLoggedURI) {
				t.Errorf("%d bytes: the log gets %d bytes: %.50s", n, len(req.RequestURI), req.RequestURI)
			}
		}), nil).ServeHTTP(httptest.NewRecorder(), req)
		if !served || req.RequestURI != uri {
			t.Errorf("%d bytes: served %v, and the request was changed: %v", n, served, req.RequestURI != uri)
		}
	}
}
