// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// encodeFunc writes an object to w.
type encodeFunc func(obj runtime.Object, w io.Writer) error

// wrapEncoder returns an encoder that calls wrap with each object, and with the function
// by which the encoder writes it.
func wrapEncoder(encoder runtime.Encoder, wrap func(obj runtime.Object, w io.Writer, encode encodeFunc) error) runtime.Encoder {
	wrapped := wrappedEncoder{encoder, wrap}
	if allocating, ok := encoder.(runtime.EncoderWithAllocator); ok {
		return wrappedAllocatingEncoder{wrapped, allocating}
	}
	return wrapped
}

type wrappedEncoder struct {
	runtime.Encoder
	wrap func(runtime.Object, io.Writer, encodeFunc) error
}

// Encode implements runtime.Encoder.
func (e wrappedEncoder) Encode(obj runtime.Object, w io.Writer) error {
	return e.wrap(obj, w, e.Encoder.Encode)
}

type wrappedAllocatingEncoder struct {
	wrappedEncoder
	allocating runtime.EncoderWithAllocator
}

// EncodeWithAllocator implements runtime.EncoderWithAllocator.
func (e wrappedAllocatingEncoder) EncodeWithAllocator(obj runtime.Object, w io.Writer, memory runtime.MemoryAllocator) error {
	return e.wrap(obj, w, func(obj runtime.Object, w io.Writer) error {
		return e.allocating.EncodeWithAllocator(obj, w, memory)
	})
}
