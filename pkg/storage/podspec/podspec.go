// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podspec decodes Pods for the watch cache. Pods with equal specs share one: most
// Pods are replicas of others, their specs are half of the memory of a watch cache, and
// decoding a spec is more than half of decoding a Pod.
package podspec

import (
	"bytes"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

const (
	// maxSpecs is the maximum number of specs that Pods can share. A spec that is no
	// longer among them remains that of the Pods that have it.
	maxSpecs = 1_000
	// maxSpecSize is the size in bytes of the largest of them, encoded.
	maxSpecSize = 4 << 10
)

// Decoder decodes Pods.
type Decoder struct {
	codec runtime.Decoder

	mu    sync.Mutex // of adding a spec that is not there
	specs *lru.Cache // by their encoded form
}

// NewDecoder returns a Decoder of the Pods that the codec encodes. The codec must set
// defaults in a spec independently of the rest of the Pod.
func NewDecoder(codec runtime.Decoder) *Decoder {
	return &Decoder{codec: codec, specs: lru.New(maxSpecs)}
}

// Decode returns a Pod whose spec must not be modified, or nil if the Pod has to be decoded
// by the codec: it is in another form than protobuf, its spec is large, or it is invalid.
func (d *Decoder) Decode(encoded []byte) runtime.Object {
	encodedSpec, rest, ok := cutSpec(encoded)
	if !ok || len(encodedSpec) > maxSpecSize {
		return nil
	}
	key := string(encodedSpec)
	spec, known := d.specs.Get(key)
	if known {
		encoded = rest()
	}
	obj, _, err := d.codec.Decode(encoded, nil, &tenancy.Pod{})
	if err != nil {
		return nil
	}
	pod, ok := obj.(*tenancy.Pod)
	if !ok {
		return nil
	}
	if known {
		pod.Spec = spec.(corev1.PodSpec)
	} else {
		pod.Spec = d.shared(key, pod.Spec)
	}
	return pod
}

// shared returns the spec that Pods with this encoded spec share. This is the given spec,
// unless another Pod was decoded at the same time.
func (d *Decoder) shared(key string, spec corev1.PodSpec) corev1.PodSpec {
	d.mu.Lock()
	defer d.mu.Unlock()
	if added, ok := d.specs.Get(key); ok {
		return added.(corev1.PodSpec)
	}
	d.specs.Add(key, spec)
	return spec
}

// protobufPrefix is the prefix of objects in protobuf, before a runtime.Unknown.
var protobufPrefix = []byte("k8s\x00")

const (
	rawField  protowire.Number = 2 // of a runtime.Unknown: the object
	specField protowire.Number = 2 // of a Pod
)

// cutSpec returns the encoded spec of an encoded Pod, and a function that returns the
// encoded Pod without its spec. It returns false if it does not find one spec.
func cutSpec(encoded []byte) (spec []byte, rest func() []byte, ok bool) {
	unknown, ok := bytes.CutPrefix(encoded, protobufPrefix)
	if !ok {
		return nil, nil, false
	}
	raw, ok := findField(unknown, rawField)
	if !ok {
		return nil, nil, false
	}
	found, ok := findField(raw.value, specField)
	if !ok {
		return nil, nil, false
	}
	return found.value, func() []byte {
		rest := make([]byte, 0, len(encoded))
		rest = append(rest, protobufPrefix...)
		rest = append(rest, raw.before...)
		rest = protowire.AppendTag(rest, rawField, protowire.BytesType)
		rest = protowire.AppendVarint(rest, uint64(len(found.before)+len(found.after)))
		rest = append(rest, found.before...)
		rest = append(rest, found.after...)
		return append(rest, raw.after...)
	}, true
}

// field is a field of a message.
type field struct {
	value         []byte
	before, after []byte // the other fields of the message
}

// findField returns the field of a message that has the number. It returns false if the
// message is invalid or does not have the field once, as bytes.
func findField(message []byte, number protowire.Number) (field, bool) {
	var found field
	for position := 0; position < len(message); {
		n, kind, size := protowire.ConsumeField(message[position:])
		if size < 0 {
			return field{}, false
		}
		end := position + size
		if n == number {
			if kind != protowire.BytesType || found.value != nil {
				return field{}, false
			}
			_, _, tag := protowire.ConsumeTag(message[position:])
			value, _ := protowire.ConsumeBytes(message[position+tag : end])
			found = field{value: value, before: message[:position], after: message[end:]}
		}
		position = end
	}
	return found, found.value != nil
}
