// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/objectinfo"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// WithRequestLimits checks patches before anything is made of them: some never pass a
// decoder. Objects are checked where they are decoded.
func WithRequestLimits(next http.Handler, checker *requestlimits.Checker, maxBytes int64, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || !info.IsResourceRequest || info.Verb != "patch" {
			next.ServeHTTP(w, req)
			return
		}
		var check func([]byte) error
		// The patch handler distinguishes the types in the same way.
		contentType, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
		switch types.PatchType(contentType) {
		case types.JSONPatchType:
			check = checker.CheckJSONPatch
		case types.MergePatchType:
			check = checker.CheckMergePatch
		case types.StrategicMergePatchType:
			check = checker.CheckStrategicMergePatch
		case types.ApplyYAMLPatchType:
			check = checker.CheckYAML
		case types.ApplyCBORPatchType: // served behind a feature gate, and can't be checked
			responsewriters.ErrorNegotiated(negotiation.NewUnsupportedMediaTypeError(checkedPatches), serializer, v1.SchemeGroupVersion, w, req)
			return
		default:
			next.ServeHTTP(w, req)
			return
		}
		// One byte too many is enough for the handler to refuse the body.
		body, err := io.ReadAll(io.LimitReader(req.Body, maxBytes+1))
		if err == nil && int64(len(body)) <= maxBytes {
			err = check(body)
		}
		if err != nil {
			responsewriters.ErrorNegotiated(apierrors.NewBadRequest(err.Error()), serializer, v1.SchemeGroupVersion, w, req)
			return
		}
		checked := req.WithContext(objectinfo.WithPatchType(req.Context(), types.PatchType(contentType)))
		checked.Body = readCloser{bytes.NewReader(body), req.Body}
		next.ServeHTTP(w, checked)
	})
}

var checkedPatches = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType),
}

type readCloser struct {
	io.Reader
	io.Closer
}
