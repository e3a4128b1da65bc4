// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// untypedCodec decodes objects without their kind. The library's codec does so when it
// converts them to internal types, but types that are also their internal types are
// not converted, and lists of them would repeat the kind in each item.
type untypedCodec struct {
	runtime.Codec
}

// Decode implements runtime.Decoder.
func (c untypedCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := c.Codec.Decode(data, defaults, into)
	if obj != nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, kind, err
}
