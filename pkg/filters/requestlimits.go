// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"cmp"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// decoder. It also checks the options of deletes, which the library decodes itself. Objects
// are checked where they are decoded.
func WithRequestLimits(next http.Handler, checker *requestlimits.Checker, maxBytes int64, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var check func([]byte) error
		ctx := req.Context()
		info, _ := request.RequestInfoFrom(ctx)
		switch {
		case info == nil || !info.IsResourceRequest:
		case info.Verb == "delete" || info.Verb == "deletecollection":
			check = optionsCheck(req, checker)
		case info.Verb == "patch":
			// The patch handler distinguishes the types in the same way.
			contentType, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
			patchType := types.PatchType(contentType)
			if patchType == types.ApplyCBORPatchType { // served behind a feature gate, and can't be checked
				responsewriters.ErrorNegotiated(negotiation.NewUnsupportedMediaTypeError(checkedPatches), serializer, v1.SchemeGroupVersion, w, req)
				return
			}
			check = patchCheck(patchType, checker)
			ctx = objectinfo.WithPatchType(ctx, patchType)
		}
		if check == nil {
			next.ServeHTTP(w, req)
			return
		}
		// One byte too many is enough for the handler to refuse the body.
		body, err := io.ReadAll(io.LimitReader(req.Body, maxBytes+1))
		if err == nil && int64(len(body)) <= maxBytes {
			err = check(body)
		}
		if err != nil {
			if _, ok := err.(apierrors.APIStatus); !ok {
				err = apierrors.NewBadRequest(err.Error())
			}
			responsewriters.ErrorNegotiated(err, serializer, v1.SchemeGroupVersion, w, req)
			return
		}
		checked := req.WithContext(ctx)
		checked.Body = readCloser{bytes.NewReader(body), req.Body}
		next.ServeHTTP(w, checked)
	})
}

// patchCheck returns the check for patches of a type, or nil if the handler refuses the type.
func patchCheck(patchType types.PatchType, checker *requestlimits.Checker) func([]byte) error {
	switch patchType {
	case types.JSONPatchType:
		return checker.CheckJSONPatch
	case types.MergePatchType:
		return checker.CheckMergePatch
	case types.StrategicMergePatchType:
		return checker.CheckStrategicMergePatch
	case types.ApplyYAMLPatchType:
		return checker.CheckYAML
	}
	return nil
}

// optionsCheck returns the check for the options of a delete. It refuses all encodings that cannot
// be checked: behind a feature gate, the handler accepts CBOR.
func optionsCheck(req *http.Request, checker *requestlimits.Checker) func([]byte) error {
	mediaType, _, _ := mime.ParseMediaType(cmp.Or(req.Header.Get("Content-Type"), runtime.ContentTypeJSON))
	check := checker.CheckFor(mediaType)
	return func(body []byte) error {
		switch {
		case check != nil:
			return check(body, metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
		case len(body) > 0:
			return negotiation.NewUnsupportedMediaTypeError(checkedOptions)
		}
		return nil
	}
}

var checkedOptions = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

var checkedPatches = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType),
}

type readCloser struct {
	io.Reader
	io.Closer
}
