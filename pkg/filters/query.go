// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/pkg/truncate"
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

const (
	// maxLoggedQuery is the maximum length of a query in bytes that the library may log as a
	// whole, with escapes, because it cannot decode its options.
	maxLoggedQuery = 512
	// maxQuotedError is the maximum length of the error about a longer query in bytes.
	maxQuotedError = 256
)

// WithLimitedQuery answers 400 to a selector that would take too long to parse, or to compare
// with objects, and to a long query with options that cannot be decoded, which the library would
// log. It has to be among the first handlers, because the library decodes the options of a list
// to find out what a request is for, before it authenticates the client.
func WithLimitedQuery(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		query := req.URL.Query()
		err := checkSelectors(query)
		if err == nil && len(req.URL.RawQuery) > maxLoggedQuery {
			err = checkOptions(req.Method, query)
		}
		if err != nil {
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

// checkOptions decodes the options that the library decodes before it authenticates the client.
func checkOptions(method string, query url.Values) error {
	if timeout := query.Get("timeout"); timeout != "" {
		if _, err := time.ParseDuration(timeout); err != nil {
			return fmt.Errorf("the timeout in the query cannot be parsed: %s", truncate.Text(err.Error(), maxQuotedError))
		}
	}
	if method != http.MethodGet && method != http.MethodHead {
		return nil
	}
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &metainternalversion.ListOptions{}); err != nil {
		return fmt.Errorf("the query cannot be decoded: %s", truncate.Text(err.Error(), maxQuotedError))
	}
	return nil
}
