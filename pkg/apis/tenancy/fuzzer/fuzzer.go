// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills objects of the tenancy.borough.io group at random, for
// tests.
package fuzzer

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/randfill"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// NewFuncs returns functions that fill the internal types with values that a
// decoder could have returned: defaults are applied. The scheme holds the group.
func NewFuncs(scheme *runtime.Scheme) func(serializer.CodecFactory) []any {
	return func(serializer.CodecFactory) []any {
		return []any{
			fill[tenancy.Namespace, v1.Namespace](scheme),
			fill[tenancy.LimitRange, v1.LimitRange](scheme),
			fill[tenancy.ResourceQuota, v1.ResourceQuota](scheme),
			fill[tenancy.NamespaceTemplate, v1.NamespaceTemplate](scheme),
			fill[tenancy.Pod, v1.Pod](scheme),
		}
	}
}

// fill returns a function that fills an internal object, and takes it to its external
// version, where defaults live, and back.
func fill[Internal, External any, I object[Internal], E object[External]](scheme *runtime.Scheme) func(I, randfill.Continue) {
	return func(obj I, c randfill.Continue) {
		c.FillNoCustom(obj)
		external := E(new(External))
		utilruntime.Must(scheme.Convert(obj, external, nil))
		scheme.Default(external)
		utilruntime.Must(scheme.Convert(external, obj, nil))
	}
}

// object is a pointer to T.
type object[T any] interface {
	*T
	runtime.Object
}
