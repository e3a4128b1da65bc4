// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/requestlimits"
)

// maxImpersonated is the maximum length in bytes, as requestlimits.EscapedSize counts them, of a
// header that impersonates, and of its name.
const maxImpersonated = maxPath

// WithLimitedImpersonation answers 400 to a request that impersonates with a header that is too
// long, or without a user. Each client can send one, and without the right to impersonate gets an
// error that quotes the header, or all of them if there is no user.
func WithLimitedImpersonation(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for name, values := range req.Header {
			if !strings.HasPrefix(name, "Impersonate-") {
				continue
			}
			for _, text := range append([]string{name}, values...) {
				if n := requestlimits.EscapedSize(text); n > maxImpersonated {
					message := fmt.Sprintf("the header %.40s has %d bytes, more than the maximum of %d", name, n, maxImpersonated)
					refuse(w, req, apierrors.NewBadRequest(message), serializer)
					return
				}
			}
			if req.Header.Get(authenticationv1.ImpersonateUserHeader) == "" {
				refuse(w, req, apierrors.NewBadRequest("the request impersonates groups, a UID or extra values without a user"), serializer)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}
