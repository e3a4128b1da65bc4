// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCoreNamespacesAreOurs(t *testing.T) {
	const ours = "/apis/tenancy.borough.io/v1/namespaces/foo"
	for request, want := range map[string]string{
		"GET /api/v1/namespaces/foo":            ours,
		"GET /api/v1/namespaces/foo?pretty=yes": ours + "?pretty=yes",
		"PUT /api/v1/namespaces/foo":            "/api/v1/namespaces/foo",
		"GET /api/v1/namespaces/foo/pods":       "/api/v1/namespaces/foo/pods",
		"GET /api/v1/namespaces/":               "/api/v1/namespaces/",
		"GET /api/v1/namespaces":                "/api/v1/namespaces",
		"GET " + ours:                           ours,
	} {
		method, path, _ := strings.Cut(request, " ")
		withCoreNamespaces(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if got := req.URL.RequestURI(); got != want {
				t.Errorf("%s: got %s, want %s", request, got, want)
			}
		})).ServeHTTP(nil, httptest.NewRequest(method, path, nil))
	}
}
