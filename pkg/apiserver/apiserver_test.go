// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

type restStorage struct{ namespaced bool }

func (restStorage) New() runtime.Object     { return nil }
func (restStorage) Destroy()                {}
func (s restStorage) NamespaceScoped() bool { return s.namespaced }

// stored is a storage with something in it.
type stored struct{ restStorage }

func (stored) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	return nil, nil
}

func TestCheckNamespaced(t *testing.T) {
	for name, tc := range map[string]struct {
		resource string
		storage  rest.Storage
		want     string
	}{
		"namespaced":         {"pods", stored{restStorage{true}}, ""},
		"cluster-scoped":     {"things", stored{restStorage{false}}, ""},
		"clash":              {"status", stored{restStorage{true}}, "subresource of that name"},
		"other clash":        {"finalize", stored{restStorage{true}}, "subresource of that name"},
		"clash without harm": {"status", stored{restStorage{false}}, ""},
		"not fenced":         {"things", stored{restStorage{true}}, "missing in the namespaced kinds"},
		"not stored":         {"things", restStorage{true}, ""},
		"clash, not stored":  {"status", restStorage{true}, "subresource of that name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&ExtraConfig{}).checkNamespaced(tenancy.GroupName, map[string]rest.Storage{
				"namespaces":          restStorage{false},
				"namespaces/status":   restStorage{false},
				"namespaces/finalize": restStorage{false},
				tc.resource:           tc.storage,
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

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
			withClusterScopedNamespaces(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
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
