// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// handlerChain is the library's, with ours innermost: they come after
// authorization, which is to see a request as it was made.
func (c *ExtraConfig) handlerChain(apiHandler http.Handler, generic *genericapiserver.Config) http.Handler {
	handler := withClusterScopedNamespaces(apiHandler)
	handler = withPurges(handler)
	handler = c.HostNamespaces.guard(handler, c.Client, generic.Serializer)
	chain := genericapiserver.DefaultBuildHandlerChain(handler, generic)
	if c.Standalone {
		chain = withCoreNamespaces(chain)
	}
	return chain
}

// withCoreNamespaces takes GET /api/v1/namespaces/NAME for a request for our
// Namespace. When an object of whatever group is not found, kubectl asks this to
// tell whether its Namespace is not there either, and shows the 404 that it gets.
func withCoreNamespaces(next http.Handler) http.Handler {
	const core = "/api/v1/namespaces/"
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, ok := strings.CutPrefix(req.URL.Path, core)
		if ok && req.Method == http.MethodGet && name != "" && !strings.Contains(name, "/") {
			ours := *req
			ours.URL = &url.URL{
				Path:     "/apis/" + v1.SchemeGroupVersion.String() + "/namespaces/" + name,
				RawQuery: req.URL.RawQuery,
			}
			req = &ours
		}
		next.ServeHTTP(w, req)
	})
}

// withClusterScopedNamespaces takes the namespace out of requests for Namespace
// objects. From the path namespaces/NAME the library concludes that NAME is
// both the name and the namespace, and makes up for that only in the core
// group; without this, admission would see another namespace on create than on
// update, objects would be given a metadata.namespace, and a watch of one
// Namespace would see nothing. Authorization still sees the namespace, as it
// does in core.
func withClusterScopedNamespaces(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if ok && info.APIGroup == tenancy.GroupName && info.Resource == "namespaces" && info.Namespace != "" {
			scoped := *info
			scoped.Namespace = ""
			req = req.WithContext(request.WithRequestInfo(req.Context(), &scoped))
		}
		next.ServeHTTP(w, req)
	})
}
