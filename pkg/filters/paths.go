// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filters has the HTTP handlers that see a request after it is authorized and
// before it is processed, and those that see it before it is authenticated.
package filters

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/requestlimits"
)

const (
	// maxPath is the maximum length of a path in bytes, as requestlimits.EscapedSize counts
	// them. Those of objects have less: see requestlimits.MaxNameLength. An error has a name
	// twice, and a resource or a group three times, and is so smaller than the 4 KiB of a
	// response that the library buffers for a client that does not read it.
	maxPath = 1200
	// maxMethod is the maximum length of a method in bytes. It is a verb in errors.
	maxMethod = 32
	// maxHealthQuery is that of the query of a health check, which the response repeats.
	maxHealthQuery = 1 << 10
	// maxLoggedURI is how many bytes of a path and its query are logged.
	maxLoggedURI = 4 << 10
)

// WithLimitedRequestLine answers 414 to a path that is too long, and 400 to a method that is. It
// has to be the first handler: the library logs paths, and keeps those of requests that it
// refuses in its metrics. It also logs RequestURI, with the query, and uses it for nothing else,
// so handlers get only its beginning.
//
// It also answers 414 to a health check whose query is too long: they need no rights.
func WithLimitedRequestLine(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if n := len(req.Method); n > maxMethod {
			refuse(w, req, apierrors.NewBadRequest(fmt.Sprintf("the method has %d bytes, more than the maximum of %d", n, maxMethod)), serializer)
			return
		}
		if n := requestlimits.EscapedSize(req.URL.Path); n > maxPath {
			refuse(w, req, newTooLong("path", n, maxPath), serializer)
			return
		}
		if isHealthCheck(req.URL.Path) {
			if n := requestlimits.EscapedSize(req.URL.RawQuery); n > maxHealthQuery {
				refuse(w, req, newTooLong("query", n, maxHealthQuery), serializer)
				return
			}
		}
		if len(req.RequestURI) > maxLoggedURI {
			logged := *req
			logged.RequestURI = req.RequestURI[:maxLoggedURI] + "..."
			req = &logged
		}
		next.ServeHTTP(w, req)
	})
}

func newTooLong(what string, n, most int) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestURITooLong, Reason: metav1.StatusReasonBadRequest,
		Message: fmt.Sprintf("the %s has %d bytes, more than the maximum of %d", what, n, most),
	}}
}

func isHealthCheck(path string) bool {
	for _, check := range []string{"/healthz", "/livez", "/readyz"} {
		if rest, ok := strings.CutPrefix(path, check); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// WithValidNamespace answers 400 to a path with a namespace that cannot be part
// of a path to an object, with the message of the library for such a name.
// The library does not check the namespace, and answers 500 when a key in etcd or
// a request for the Namespace is to be made of it.
func WithValidNamespace(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		// Of a Namespace object it is the name, which the library does check.
		if ok && info.IsResourceRequest && info.Namespace != "" && info.Resource != "namespaces" {
			faults := content.IsPathSegmentName(info.Namespace)
			if len(info.Namespace) > validation.DNS1123SubdomainMaxLength { // caches have it in their keys
				faults = append(faults, validation.MaxLenError(validation.DNS1123SubdomainMaxLength))
			}
			if len(faults) > 0 {
				err := apierrors.NewBadRequest(fmt.Sprintf("Namespace parameter invalid: %q: %s", info.Namespace, strings.Join(faults, ";")))
				responsewriters.ErrorNegotiated(err, serializer, v1.SchemeGroupVersion, w, req)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// WithClusterScopedNamespaces removes the namespace from requests for Namespaces.
// The library takes NAME in the path namespaces/NAME as both the name and the
// namespace, and corrects that only in the core group. Without this handler,
// admission would see different namespaces on create and on update, objects would
// get a metadata.namespace, and a watch of one Namespace would have no events. The
// library does not correct such a watch of the core group either, because the store is
// that of this group; the storage does.
// Authorization still sees the namespace, as in the core group.
func WithClusterScopedNamespaces(next http.Handler) http.Handler {
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
