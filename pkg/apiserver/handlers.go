// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/authfailure"
	"github.com/borough-io/borough/pkg/authorization/revocation"
	"github.com/borough-io/borough/pkg/filters"
)

// handlerChain returns the handler chain of the library with ours innermost, after
// authorization, which has to see the request unchanged, or outermost.
func (c *ExtraConfig) handlerChain(apiHandler http.Handler, generic *genericapiserver.Config) http.Handler {
	chain := genericapiserver.DefaultBuildHandlerChain(c.innerHandlers(apiHandler, generic), generic)
	if c.Standalone != nil {
		chain = revocation.WithImpersonation(chain)
	}
	chain = filters.WithWriteDeadline(authfailure.WithErrors(chain, generic.Serializer), generic)
	// The deadline depends on what the request is for, for which its query is decoded.
	chain = filters.WithLimitedQuery(chain, generic.Serializer)
	chain = filters.WithLimitedImpersonation(chain, generic.Serializer)
	return filters.WithLimitedRequestLine(chain, generic.Serializer)
}

// innerHandlers returns our part of the chain.
func (c *ExtraConfig) innerHandlers(apiHandler http.Handler, generic *genericapiserver.Config) http.Handler {
	handler := filters.WithStreamedTables(apiHandler, c.Scheme, generic.Serializer)
	handler = filters.WithAttempts(handler, c.Storage, generic.Serializer)
	handler = filters.WithRequestLimits(handler, c.limits, generic.MaxRequestBodyBytes, generic.Serializer)
	handler = filters.WithClusterScopedNamespaces(handler)
	handler = c.ClusterNamespaces.WithFilter(handler, c.Client, generic.Serializer)
	handler = filters.WithUnreadable(handler, c.Unreadable, generic.Authorization.Authorizer)
	handler = filters.WithValidNamespace(handler, generic.Serializer)
	handler = filters.WithLimitedFieldManager(handler, generic.Serializer)
	handler = filters.WithValidQuery(handler, generic.Serializer)
	if c.Standalone != nil {
		handler = revocation.WithAttributes(handler)
	}
	return handler
}
