// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shape describes where a type has quantities, and how long its lists may be. It is
// derived from the tags of the Go types, so it covers new fields of an API
// automatically. A nil shape is an unknown type.
type shape struct {
	// quantity says that this is a quantity, which may be a string or a number.
	quantity bool
	// json says that these are bytes that hold JSON.
	json bool

	// fields are those of a struct by their names in JSON.
	fields map[string]*shape
	// numbers are the fields of what protobuf encodes as a message, by their
	// numbers: of a struct, where embedded ones are not inlined, of an entry of a
	// map, of a quantity.
	numbers map[protowire.Number]numbered

	// list and dict say that this is a list or map of elem.
	list, dict bool
	elem       *shape
	// varint says that the elements of a list are numbers, which protobuf can
	// pack into one field.
	varint bool
	// max is the number of elements, 0 for MaxElements.
	max int
	// name says that this is a string of at most MaxNameLength bytes.
	name bool
}

// numbered is a field of a message. Its name in JSON is empty where JSON inlines
// it.
type numbered struct {
	*shape
	name string
}

// maxima are the lists that have limits of their own, by the type of their
// elements.
var maxima = map[reflect.Type]int{
	reflect.TypeFor[corev1.Container]():          MaxContainers,
	reflect.TypeFor[corev1.EphemeralContainer](): MaxContainers,
	reflect.TypeFor[corev1.ContainerStatus]():    MaxContainers,
	reflect.TypeFor[corev1.LimitRangeItem]():     MaxLimitRangeItems,
	reflect.TypeFor[metav1.ManagedFieldsEntry](): MaxManagers,
	reflect.TypeFor[metav1.OwnerReference]():     MaxOwners,
}

// names are the fields that are strings of at most MaxNameLength bytes, by the type of their
// struct.
var names = map[reflect.Type][]string{
	reflect.TypeFor[metav1.ObjectMeta]():     {"Name", "GenerateName"},
	reflect.TypeFor[metav1.OwnerReference](): {"APIVersion", "Kind", "Name", "UID"},
	// Keys of elements that contain lists. An error of server-side apply about anything
	// in an element repeats its key.
	reflect.TypeFor[corev1.Container]():                {"Name"},
	reflect.TypeFor[corev1.EphemeralContainerCommon](): {"Name"},
	reflect.TypeFor[corev1.Volume]():                   {"Name"},
	reflect.TypeFor[corev1.TopologySpreadConstraint](): {"TopologyKey", "WhenUnsatisfiable"},
	reflect.TypeFor[corev1.HostAlias]():                {"IP"},
	reflect.TypeFor[corev1.VolumeMount]():              {"MountPath"},
	reflect.TypeFor[corev1.ResourceStatus]():           {"Name"},
	reflect.TypeFor[corev1.PodVolumeHealth]():          {"Name"},

	reflect.TypeFor[corev1.NodeAllocatableResourceClaimStatus](): {"ResourceClaimName"},
}

// field returns the shape of a field of a struct, or of an entry of a map.
func (s *shape) field(name []byte) *shape {
	switch {
	case s == nil:
		return nil
	case s.dict:
		return s.elem
	}
	return s.fields[string(name)]
}

// element returns the shape of the elements of a list.
func (s *shape) element() *shape {
	if s == nil || !s.list {
		return nil
	}
	return s.elem
}

func (s *shape) limit() int {
	if s == nil || s.max == 0 {
		return MaxElements
	}
	return s.max
}

// shapes makes shapes of types, each once: types may contain themselves.
type shapes map[reflect.Type]*shape

func (known shapes) of(t reflect.Type) *shape {
	if t.Kind() == reflect.Pointer {
		return known.of(t.Elem())
	}
	if s, found := known[t]; found {
		return s
	}
	s := &shape{}
	known[t] = s
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		s.quantity = true
		s.numbers = map[protowire.Number]numbered{1: {shape: &shape{quantity: true}}}
		return s
	case reflect.TypeFor[metav1.FieldsV1]():
		s.numbers = map[protowire.Number]numbered{1: {shape: &shape{json: true}}}
		return s
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return s
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // bytes are one value
			return s
		}
		s.list, s.elem, s.max = true, known.of(t.Elem()), maxima[t.Elem()]
		switch t.Elem().Kind() {
		case reflect.Int32, reflect.Int64, reflect.Bool:
			s.varint = true
		}
	case reflect.Map:
		s.dict, s.elem = true, known.of(t.Elem())
		s.numbers = map[protowire.Number]numbered{2: {shape: s.elem}}
	case reflect.Struct:
		s.fields, s.numbers = map[string]*shape{}, map[protowire.Number]numbered{}
		for i := range t.NumField() {
			known.addField(s, t, t.Field(i))
		}
	}
	return s
}

func (known shapes) addField(s *shape, t reflect.Type, f reflect.StructField) {
	if !f.IsExported() {
		return
	}
	of := known.of(f.Type)
	if slices.Contains(names[t], f.Name) {
		of = &shape{name: true}
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "-":
	case name != "":
		s.fields[name] = of
	case f.Anonymous:
		for name, inlined := range of.fields {
			if s.fields[name] == nil {
				s.fields[name] = inlined
			}
		}
	default: // as encoding/json has it; internal types have no tags
		s.fields[f.Name] = of
	}
	// bytes,1,opt,name=metadata
	if parts := strings.SplitN(f.Tag.Get("protobuf"), ",", 3); len(parts) == 3 {
		if number, err := strconv.ParseInt(parts[1], 10, 32); err == nil {
			s.numbers[protowire.Number(number)] = numbered{of, name}
		}
	}
}

// union returns a shape that has the fields of both by name. Where both know
// more of a field than its name, they have to agree on what it is.
func union(a, b *shape) *shape {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	u := &shape{
		quantity: a.quantity || b.quantity,
		name:     a.name || b.name,
		list:     a.list || b.list,
		dict:     a.dict || b.dict,
		max:      max(a.max, b.max),
		elem:     union(a.elem, b.elem),
		fields:   map[string]*shape{},
	}
	maps.Copy(u.fields, a.fields)
	for name, field := range b.fields {
		u.fields[name] = union(u.fields[name], field)
	}
	return u
}
