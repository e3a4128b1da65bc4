// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// listBufferSize is the least size of a response that the library compresses.
const listBufferSize = 128<<10 + 1

var listBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, listBufferSize) }}

// listSerializer collects what encoders write of a list, in buffers that are used again.
// The library encodes a list object by object. It sends each object by itself or, if the
// client accepts compression, appends it to a slice until that is large enough to be
// compressed, which takes more memory than all other work of a list.
type listSerializer struct{ runtime.NegotiatedSerializer }

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s listSerializer) EncoderForVersion(serializer runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return wrapEncoder(s.NegotiatedSerializer.EncoderForVersion(serializer, gv), encodeBuffered)
}

// encodeBuffered calls encode with a buffer before w if the object is a list, or a Status,
// which has the metadata of a list and is small.
func encodeBuffered(obj runtime.Object, w io.Writer, encode encodeFunc) error {
	if _, list := obj.(metav1.ListMetaAccessor); !list {
		return encode(obj, w)
	}
	buffer := listBuffers.Get().(*bufio.Writer)
	buffer.Reset(w)
	defer func() {
		buffer.Reset(nil) // the pool must not keep the response
		listBuffers.Put(buffer)
	}()
	if err := encode(obj, buffer); err != nil {
		return err
	}
	return buffer.Flush()
}
