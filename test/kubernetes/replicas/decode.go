// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned/scheme"
)

// Prefix is the prefix of all keys in etcd.
const Prefix = "/registry/"

// IsObject reports whether a key is that of an object, and not one that a server or a
// test keeps for itself.
func IsObject(key string) bool { return strings.Contains(strings.TrimPrefix(key, Prefix), "/") }

// decoder has the types of all stored objects.
var decoder = func() runtime.Decoder {
	stored := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(stored))
	utilruntime.Must(coordinationv1.AddToScheme(stored))
	utilruntime.Must(corev1.AddToScheme(stored))
	utilruntime.Must(rbacv1.AddToScheme(stored))
	return serializer.NewCodecFactory(stored).UniversalDeserializer()
}()

// Decode returns the object in a value in etcd.
func Decode(value []byte) (runtime.Object, error) {
	obj, err := runtime.Decode(decoder, value)
	if err != nil {
		return nil, fmt.Errorf("decode a stored object: %w", err)
	}
	return obj, nil
}
