// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// slot is a field, an element or an entry in decoded JSON whose Go type is
// known.
type slot struct {
	// key names the type and the field, as in Container.image. Elements have the
	// key of their list.
	key     string
	typ     reflect.Type
	pointer string // as in RFC 6901
	present bool
	value   any
	set     func(any)
	remove  func() // nil for elements
}

// opaque types are single values in JSON although they are structs.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[resource.Quantity]():  true,
	reflect.TypeFor[metav1.Time]():        true,
	reflect.TypeFor[metav1.MicroTime]():   true,
	reflect.TypeFor[intstr.IntOrString](): true,
	reflect.TypeFor[metav1.FieldsV1]():    true,
}

// slotsOf returns all slots in an existing object, including empty ones.
func slotsOf(value any, typ reflect.Type) (slots []slot) {
	walk(slot{key: typ.Name(), typ: typ, value: value}, func(s slot) { slots = append(slots, s) })
	return slots
}

// walk visits the slots in the value of a slot.
func walk(in slot, visit func(slot)) {
	typ := in.typ
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if opaque[typ] {
		return
	}
	switch value := in.value.(type) {
	case map[string]any:
		switch typ.Kind() {
		case reflect.Struct:
			for _, field := range fieldsOf(typ) {
				s := entry(in, value, field.name, typ.Name()+"."+field.name, field.typ)
				visit(s)
				if s.present {
					walk(s, visit)
				}
			}
		case reflect.Map:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				s := entry(in, value, name, in.key+"{}", typ.Elem())
				visit(s)
				walk(s, visit)
			}
			visit(entry(in, value, "example.com/new", in.key+"{}", typ.Elem()))
		}
	case []any:
		if typ.Kind() != reflect.Slice {
			return
		}
		for i, item := range value {
			s := slot{
				key: in.key + "[]", typ: typ.Elem(), present: true, value: item,
				pointer: fmt.Sprintf("%s/%d", in.pointer, i),
				set:     func(v any) { value[i] = v },
			}
			visit(s)
			walk(s, visit)
		}
	}
}

// entry returns the slot of an entry of an object.
func entry(in slot, object map[string]any, name, key string, typ reflect.Type) slot {
	item, present := object[name]
	return slot{
		key: key, typ: typ, present: present, value: item,
		pointer: in.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name),
		set:     func(v any) { object[name] = v },
		remove:  func() { delete(object, name) },
	}
}

type jsonField struct {
	name string
	typ  reflect.Type
}

// fieldsOf returns the fields of a struct with their JSON names.
func fieldsOf(typ reflect.Type) (fields []jsonField) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && field.Anonymous:
			fields = append(fields, fieldsOf(field.Type)...)
		case name != "":
			fields = append(fields, jsonField{name, field.Type})
		}
	}
	return fields
}
