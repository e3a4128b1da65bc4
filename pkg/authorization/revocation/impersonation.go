// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// The library decides whether a client may impersonate, and keeps only the user that it
// impersonates. So its decisions are noted where it asks for them.

type impersonationKey struct{}

// impersonation has what the client of a request was allowed to impersonate.
type impersonation struct{ allowed []authorizer.Attributes }

// WithImpersonation prepares requests that impersonate a user for NewAuthorizer. It has
// to be a handler before authentication.
func WithImpersonation(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get(authenticationv1.ImpersonateUserHeader) != "" {
			req = req.WithContext(context.WithValue(req.Context(), impersonationKey{}, &impersonation{}))
		}
		next.ServeHTTP(w, req)
	})
}

// impersonated returns what the client of a request impersonates, unless it always has
// all rights.
func impersonated(ctx context.Context) []authorizer.Attributes {
	if i, ok := ctx.Value(impersonationKey{}).(*impersonation); ok {
		return i.allowed
	}
	return nil
}

// NewAuthorizer returns an authorizer that decides as another one, and notes for
// WithAttributes what a client was allowed to impersonate.
func NewAuthorizer(delegate authorizer.Authorizer) authorizer.Authorizer {
	return noting{delegate}
}

type noting struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (n noting) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := n.Authorizer.Authorize(ctx, a)
	i, ok := ctx.Value(impersonationKey{}).(*impersonation)
	if ok && decision == authorizer.DecisionAllow && a.GetVerb() == "impersonate" && !IsPrivileged(a.GetUser()) {
		i.allowed = append(i.allowed, a)
	}
	return decision, reason, err
}
