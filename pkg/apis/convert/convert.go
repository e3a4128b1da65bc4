// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert has what handwritten conversions between API types share. Like generated
// ones, they share memory: what was converted must not be changed.
package convert

import (
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// Add adds a conversion to a scheme.
func Add[In, Out any](scheme *runtime.Scheme, convert func(*In, *Out)) error {
	return scheme.AddConversionFunc((*In)(nil), (*Out)(nil), func(in, out any, _ conversion.Scope) error {
		convert(in.(*In), out.(*Out))
		return nil
	})
}

// Slice converts the elements of a slice. Of nil it returns nil.
func Slice[In, Out any](in []In, one func(*In, *Out)) []Out {
	if in == nil {
		return nil
	}
	out := make([]Out, len(in))
	for i := range in {
		one(&in[i], &out[i])
	}
	return out
}
