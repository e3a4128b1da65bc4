// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckMergeTarget checks the object that a strategic merge patch is to be merged
// into. It returns an *Error if its lists are too long for that.
func CheckMergeTarget(object runtime.Object) error {
	if comparisons(reflect.ValueOf(object)) <= MaxMergeComparisons {
		return nil
	}
	return &Error{Detail: fmt.Sprintf("the lists of the object are too long for a strategic merge patch: "+
		"the squares of their lengths must be at most %d together; another kind of patch can be used", MaxMergeComparisons)}
}

// comparisons adds up the squares of the lengths of all lists.
func comparisons(v reflect.Value) (n int) {
	switch v.Type() {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return 0 // one value each
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n = comparisons(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += comparisons(v.Field(i))
		}
	case reflect.Slice:
		elem := v.Type().Elem().Kind()
		if elem == reflect.Uint8 {
			return 0
		}
		n = v.Len() * v.Len()
		if elem == reflect.Struct || elem == reflect.Pointer {
			for i := range v.Len() {
				n += comparisons(v.Index(i))
			}
		}
	}
	return n
}
