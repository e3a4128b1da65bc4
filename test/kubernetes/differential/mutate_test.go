// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"math/rand/v2"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mutator changes single fields of valid objects. The results are near the
// limits of validation, on either side.
type mutator struct {
	*rand.Rand
	// seen has the values of each kind of slot in known objects.
	seen map[string][]any
}

func newMutator(r *rand.Rand) *mutator { return &mutator{r, map[string][]any{}} }

// learn records the values in an object.
func (m *mutator) learn(object any, typ reflect.Type) {
	for _, s := range slotsOf(object, typ) {
		if s.present && s.value != nil {
			m.seen[s.key] = append(m.seen[s.key], s.value)
		}
	}
}

// mutate changes a slot in an object and returns it. It changes only slots
// whose pointer starts with one of the prefixes.
func (m *mutator) mutate(object any, typ reflect.Type, prefixes ...string) slot {
	var present, all []slot
	for _, s := range slotsOf(object, typ) {
		if !under(s.pointer, prefixes) {
			continue
		}
		all = append(all, s)
		if s.present {
			present = append(present, s)
		}
	}
	if len(all) == 0 {
		return slot{}
	}
	s := pick(m.Rand, all)
	if len(present) > 0 && m.IntN(2) == 0 {
		s = pick(m.Rand, present)
	}
	if s.present && s.remove != nil && m.IntN(6) == 0 {
		s.remove()
		s.present = false
		return s
	}
	s.value, s.present = m.valueFor(s), true
	s.set(s.value)
	return s
}

// under reports whether the pointer is one of the prefixes or below one.
func under(pointer string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(pointer+"/", prefix+"/") {
			return true
		}
	}
	return false
}

// valueFor returns a value for a slot, mostly of its type.
func (m *mutator) valueFor(s slot) any {
	switch seen := m.seen[s.key]; {
	case m.IntN(100) == 0:
		return pick(m.Rand, []any{nil, "x", 1, -1.5, true, []any{}, map[string]any{}, []any{nil}})
	case len(seen) > 0 && m.IntN(5) < 3:
		return clone(pick(m.Rand, seen))
	}
	typ := s.typ
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ {
	case reflect.TypeFor[resource.Quantity]():
		return pick(m.Rand, quantities)
	case reflect.TypeFor[intstr.IntOrString]():
		return pick(m.Rand, portsOrNames)
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return pick(m.Rand, times)
	}
	switch typ.Kind() {
	case reflect.String:
		if values := enumerations[typ.Name()]; len(values) > 0 && m.IntN(3) > 0 {
			return pick(m.Rand, values)
		}
		return pick(m.Rand, words)
	case reflect.Bool:
		return m.IntN(2) == 0
	case reflect.Int, reflect.Int32, reflect.Int64:
		return pick(m.Rand, numbers)
	case reflect.Slice:
		return m.list(s)
	case reflect.Map:
		if typ.Elem() == reflect.TypeFor[resource.Quantity]() {
			return map[string]any{pick(m.Rand, resourceNames): pick(m.Rand, quantities)}
		}
		return map[string]any{pick(m.Rand, words): pick(m.Rand, words)}
	case reflect.Struct:
		return map[string]any{}
	}
	return nil
}

// list returns the list of a slot with an element added, removed, repeated or
// moved, or a new list with one element.
func (m *mutator) list(s slot) any {
	list, _ := s.value.([]any)
	list = clone(list)
	element := slot{key: s.key + "[]", typ: s.typ.Elem()}
	switch n := len(list); {
	case n == 0 || m.IntN(3) == 0:
		return append(list, m.valueFor(element))
	case m.IntN(3) == 0:
		return append(list, clone(pick(m.Rand, list)))
	case m.IntN(2) == 0:
		m.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list
	default:
		return list[:n-1]
	}
}

func pick[T any](r *rand.Rand, values []T) T { return values[r.IntN(len(values))] }
