// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

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

// WithLimitedSelectors answers 400 to a selector that would take too long to parse, or to
// compare with objects. It has to be among the first handlers, because the library parses the
// selector to find out what a request is for, before it authenticates the client.
func WithLimitedSelectors(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := checkSelectors(req.URL.Query()); err != nil {
			refuse(w, req, apierrors.NewBadRequest(err.Error()), serializer)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func checkSelectors(query url.Values) error {
	for _, selector := range query["labelSelector"] {
		if err := requestlimits.CheckLabelSelector(selector); err != nil {
			return err
		}
	}
	for _, selector := range query["fieldSelector"] {
		if err := requestlimits.CheckFieldSelector(selector); err != nil {
			return err
		}
	}
	return nil
}
