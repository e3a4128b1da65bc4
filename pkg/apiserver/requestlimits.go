// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/objectinfo"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// Bodies are checked in two places, before anything is made of them: patches
// where they come in, because some never pass a decoder, and objects where they
// are decoded. Among these is what a JSON patch makes of an object: it may have
// copied a text to where a quantity is expected.

// limitedSerializer checks what it decodes. It serves only encodings that can be
// checked.
type limitedSerializer struct {
	runtime.NegotiatedSerializer
	checker *requestlimits.Checker
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s limitedSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return s.check(info.MediaType) == nil
	})
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s limitedSerializer) DecoderToVersion(serializer runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if serializer == info.Serializer || serializer == info.StrictSerializer {
			serializer = limitedDecoder{serializer, s.check(info.MediaType)}
			break
		}
	}
	return s.NegotiatedSerializer.DecoderToVersion(serializer, gv)
}

type checkFunc func(data []byte, defaults schema.GroupVersionKind) error

func (s limitedSerializer) check(mediaType string) checkFunc {
	switch mediaType {
	case runtime.ContentTypeJSON:
		return func(data []byte, _ schema.GroupVersionKind) error { return s.checker.CheckJSON(data) }
	case runtime.ContentTypeYAML:
		return func(data []byte, _ schema.GroupVersionKind) error { return s.checker.CheckYAML(data) }
	case runtime.ContentTypeProtobuf:
		return s.checker.CheckProtobuf
	}
	return nil
}

type limitedDecoder struct {
	runtime.Decoder
	check checkFunc
}

// Decode implements runtime.Decoder.
func (d limitedDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var gvk schema.GroupVersionKind
	if defaults != nil {
		gvk = *defaults
	}
	if err := d.check(data, gvk); err != nil {
		return nil, defaults, err
	}
	return d.Decoder.Decode(data, defaults, into)
}

// withRequestLimits checks patches.
func withRequestLimits(next http.Handler, checker *requestlimits.Checker, maxBytes int64, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || !info.IsResourceRequest || info.Verb != "patch" {
			next.ServeHTTP(w, req)
			return
		}
		var check func([]byte) error
		// The patch handler distinguishes the types in the same way.
		switch contentType, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";"); types.PatchType(contentType) {
		case types.JSONPatchType:
			check = checker.CheckJSONPatch
		case types.MergePatchType:
			check = checker.CheckJSON
		case types.StrategicMergePatchType:
			check = checker.CheckStrategicMergePatch
			req = req.WithContext(objectinfo.WithStrategicMergePatch(req.Context()))
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
		checked := *req
		checked.Body = readCloser{bytes.NewReader(body), req.Body}
		next.ServeHTTP(w, &checked)
	})
}

var checkedPatches = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType),
}

type readCloser struct {
	io.Reader
	io.Closer
}
