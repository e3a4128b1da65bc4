// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filters has the HTTP handlers that see a request after it is authorized and
// before it is processed.
package filters

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// WithValidQuery answers 400 to a query that cannot be parsed. Everything behind
// it uses what the standard library can read of such a query and ignores the
// rest. If the rest was the label selector of a DELETE, the whole collection
// would be deleted.
func WithValidQuery(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := url.ParseQuery(req.URL.RawQuery); err != nil {
			err := apierrors.NewBadRequest(fmt.Sprintf("the query of the request cannot be parsed: %v", err))
			responsewriters.ErrorNegotiated(err, serializer, v1.SchemeGroupVersion, w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// optionsKinds are the kinds of the options of verbs with a field manager.
var optionsKinds = map[string]string{"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}

// WithLimitedFieldManager answers 422 to a field manager that is too long, as the library
// does. The library also names every character that is invalid, each with the whole
// field manager.
func WithLimitedFieldManager(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || optionsKinds[info.Verb] == "" {
			next.ServeHTTP(w, req)
			return
		}
		for _, manager := range req.URL.Query()["fieldManager"] {
			if len(manager) > metav1validation.FieldManagerMaxLength {
				errs := field.ErrorList{field.TooLong(field.NewPath("fieldManager"), "", metav1validation.FieldManagerMaxLength)}
				err := apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: optionsKinds[info.Verb]}, "", errs)
				responsewriters.ErrorNegotiated(err, serializer, v1.SchemeGroupVersion, w, req)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// WithLimitedSelectors answers 400 to a label selector that would take too long to parse.
// It has to be the first handler, because the library parses the selector to find out
// what a request is for, before it authenticates the client.
func WithLimitedSelectors(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for _, selector := range req.URL.Query()["labelSelector"] {
			if err := requestlimits.CheckLabelSelector(selector); err != nil {
				responsewriters.ErrorNegotiated(apierrors.NewBadRequest(err.Error()), serializer, v1.SchemeGroupVersion, w, req)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// WithValidNamespace answers 400 to a path with a namespace that cannot be part
// of a path to an object, in the words in which the library refuses such a name.
// The library does not check the namespace, and answers 500 when a key in etcd or
// a request for the Namespace is to be made of it.
func WithValidNamespace(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		// Of a Namespace object it is the name, which the library does check.
		if ok && info.IsResourceRequest && info.Namespace != "" && info.Resource != "namespaces" {
			if faults := content.IsPathSegmentName(info.Namespace); len(faults) > 0 {
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
// get a metadata.namespace, and a watch of one Namespace would have no events.
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
