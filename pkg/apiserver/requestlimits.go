// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/requestlimits"
)

// limitedSerializer checks what it decodes: objects in requests, and what a JSON patch
// makes of an object, which may have copied a text to where a quantity is expected. It
// serves only encodings that can be checked. Package filters checks patches.
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
