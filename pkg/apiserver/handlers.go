// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/tenancy"
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
