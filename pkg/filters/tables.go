// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/table"
)

// WithStreamedTables lets the registry convert a list to a Table in JSON, row by
// row (see table.List). The library, which would convert it as a whole, is then
// asked for JSON. It still converts a Table that is indented, or written to the
// audit log.
func WithStreamedTables(next http.Handler, scheme *runtime.Scheme, serializer runtime.NegotiatedSerializer) http.Handler {
	convertor := runtime.UnsafeObjectConvertor(scheme)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		format, ok := tableFormat(req, serializer)
		if !ok {
			next.ServeHTTP(w, req)
			return
		}
		info, _ := request.RequestInfoFrom(req.Context())
		format.Convert = func(obj runtime.Object) (runtime.Object, error) {
			return convertor.ConvertToVersion(obj, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion})
		}
		req = req.WithContext(table.WithFormat(req.Context(), format))
		req.Header = req.Header.Clone()
		req.Header.Set("Accept", runtime.ContentTypeJSON)
		next.ServeHTTP(w, req)
	})
}

// tableFormat returns the format of the table that is streamed in response to the
// request, and whether there is one.
func tableFormat(req *http.Request, serializer runtime.NegotiatedSerializer) (table.Format, bool) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !isOwn(info) || info.Verb != "list" || info.Subresource != "" {
		return table.Format{}, false
	}
	if !audit.AuditContextFrom(req.Context()).GetEventLevel().Less(auditinternal.LevelRequestResponse) {
		return table.Format{}, false
	}
	accepted, output, err := negotiation.NegotiateOutputMediaType(req, serializer, listRestrictions)
	if err != nil || accepted.Convert == nil || accepted.Convert.Kind != "Table" ||
		output.MediaType != runtime.ContentTypeJSON || output.Serializer == output.PrettySerializer {
		return table.Format{}, false
	}
	options := &metav1.TableOptions{}
	err = metainternalversionscheme.ParameterCodec.DecodeParameters(req.URL.Query(), metav1.SchemeGroupVersion, options)
	if err != nil || len(validation.ValidateTableOptions(options)) > 0 {
		return table.Format{}, false // the library returns the error
	}
	return table.Format{Version: accepted.Convert.GroupVersion(), Include: options.IncludeObject}, true
}

// listRestrictions are the restrictions of media types that the library has for
// lists.
var listRestrictions negotiation.EndpointRestrictions = &handlers.RequestScope{TableConvertor: rest.NewDefaultTableConvertor(schema.GroupResource{})}
