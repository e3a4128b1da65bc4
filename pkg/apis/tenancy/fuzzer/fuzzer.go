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
			func(obj *tenancy.Namespace, c randfill.Continue) {
				c.FillNoCustom(obj)
				applyDefaults(scheme, obj, &v1.Namespace{})
			},
			func(obj *tenancy.LimitRange, c randfill.Continue) {
				c.FillNoCustom(obj)
				applyDefaults(scheme, obj, &v1.LimitRange{})
			},
			func(obj *tenancy.ResourceQuota, c randfill.Continue) {
				c.FillNoCustom(obj)
				applyDefaults(scheme, obj, &v1.ResourceQuota{})
			},
			func(obj *tenancy.NamespaceTemplate, c randfill.Continue) {
				c.FillNoCustom(obj)
				applyDefaults(scheme, obj, &v1.NamespaceTemplate{})
			},
			func(obj *tenancy.Pod, c randfill.Continue) {
				c.FillNoCustom(obj)
				applyDefaults(scheme, obj, &v1.Pod{})
			},
		}
	}
}

// applyDefaults takes an object to its external version, where defaults live,
// and back.
func applyDefaults(scheme *runtime.Scheme, internal, external runtime.Object) {
	utilruntime.Must(scheme.Convert(internal, external, nil))
	scheme.Default(external)
	utilruntime.Must(scheme.Convert(external, internal, nil))
}
