// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckObject checks the lists and maps of an object that was not decoded from a body:
// the result of a patch that is merged into an object can have more elements than any
// patch. It returns an *Error if a request with the object as its body would be refused.
func CheckObject(object runtime.Object) error { return checkLengths(reflect.ValueOf(object)) }

func checkLengths(v reflect.Value) error {
	t := v.Type()
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return nil // one value each
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkLengths(v.Elem())
		}
	case reflect.Struct:
		names := names[t]
		for i := range v.NumField() {
			err := checkLengths(v.Field(i))
			// t.Field allocates, so only where there are names.
			if len(names) > 0 && slices.Contains(names, t.Field(i).Name) {
				err = checkName(v.Field(i).Len())
			}
			if err != nil {
				return atField(err, []byte(jsonName(t.Field(i))), false)
			}
		}
	case reflect.Map:
		if v.Len() > MaxElements {
			return errTooManyEntries
		}
	case reflect.Slice:
		return checkElements(v, t.Elem())
	}
	return nil
}

func checkElements(list reflect.Value, elem reflect.Type) error {
	if elem.Kind() == reflect.Uint8 { // bytes are one value
		return nil
	}
	if limit := (&shape{max: maxima[elem]}).limit(); list.Len() > limit {
		return tooManyElements(limit)
	}
	if elem.Kind() != reflect.Struct {
		return nil
	}
	for i := range list.Len() {
		if err := checkLengths(list.Index(i)); err != nil {
			return atIndex(err, i)
		}
	}
	return nil
}

// jsonName returns the name of a field in JSON, or "" if its fields are inlined. Internal
// types have no tags.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name != "":
		return name
	case f.Type == reflect.TypeFor[metav1.ObjectMeta]():
		return "metadata"
	case f.Anonymous:
		return ""
	}
	return string(unicode.ToLower(rune(f.Name[0]))) + f.Name[1:]
}
