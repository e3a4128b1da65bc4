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
		return s.checker.CheckFor(info.MediaType) == nil
	})
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s limitedSerializer) DecoderToVersion(serializer runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if serializer == info.Serializer || serializer == info.StrictSerializer {
			serializer = limitedDecoder{serializer, s.checker.CheckFor(info.MediaType)}
			break
		}
	}
	return s.NegotiatedSerializer.DecoderToVersion(serializer, gv)
}

type limitedDecoder struct {
	runtime.Decoder
	check requestlimits.CheckFunc
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
