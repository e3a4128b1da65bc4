// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored defines by which keys and in which form etcd has the objects of a
// resource.
package stored

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

// Resource is a resource in etcd.
type Resource struct {
	schema.GroupResource
	// Prefix is the prefix of all keys of the resource. It ends in a slash, and is
	// followed by the name of an object, or by that of its Namespace, a slash and its name.
	Prefix string
	// Codec encodes and decodes objects.
	Codec runtime.Codec
	// Transformer encrypts what Codec encodes.
	Transformer value.Transformer
}

// In returns the prefix of the keys of the objects in a Namespace.
func (r *Resource) In(namespace string) string { return r.Prefix + namespace + "/" }

// Split returns the namespace and the name in the key of a namespaced object, and false if
// it is not such a key of the resource.
func (r *Resource) Split(key string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, r.Prefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", false
	}
	return namespace, name, true
}

// Decrypt returns the encoded object in a value.
func (r *Resource) Decrypt(ctx context.Context, kv *mvccpb.KeyValue) ([]byte, error) {
	encoded, _, err := r.Transformer.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
	if err != nil {
		return nil, fmt.Errorf("decrypt %s: %w", kv.Key, err)
	}
	return encoded, nil
}

// Decode returns the object in a value.
func (r *Resource) Decode(ctx context.Context, kv *mvccpb.KeyValue) (runtime.Object, error) {
	encoded, err := r.Decrypt(ctx, kv)
	if err != nil {
		return nil, err
	}
	obj, err := runtime.Decode(r.Codec, encoded)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", kv.Key, err)
	}
	return obj, nil
}
