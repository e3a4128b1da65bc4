// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"maps"
	"reflect"
)

// changeOf returns a request that changes a stored object by PUT, or by a PATCH
// of any type. It changes only fields below the pointers.
func changeOf(m *mutator, path string, stored object, typ reflect.Type, pointers ...string) step {
	changed := clone(stored)
	place := m.mutate(changed, typ, pointers...)
	for range m.IntN(2) {
		m.mutate(changed, typ, pointers...)
	}
	if m.IntN(6) == 0 {
		metadata, _ := changed["metadata"].(object)
		if metadata != nil {
			metadata["resourceVersion"] = pick(m.Rand, []any{"$resourceVersion", "1", "x", "0", ""})
		}
	}
	return requestFor(m, path, stored, changed, place)
}

// requestFor returns a request that changes the stored object to the changed
// one. A JSON patch changes only the slot.
func requestFor(m *mutator, path string, stored, changed object, place slot) step {
	query := pick(m.Rand, []string{"", "", "", "", "?dryRun=All", "?fieldManager=b", "?fieldValidation=Strict", "?fieldValidation=Warn", "?fieldValidation=Ignore"})
	switch m.IntN(8) {
	case 0:
		op := object{"op": "replace", "path": place.pointer, "value": place.value}
		switch {
		case !place.present:
			op = object{"op": "remove", "path": place.pointer}
		case m.IntN(2) == 0:
			op["op"] = "add"
		}
		return step{Do: "PATCH " + path + query, As: "json", Body: []any{op}}
	case 1:
		return step{Do: "PATCH " + path + query, As: "merge", Body: mergePatch(stored, changed)}
	case 2:
		return step{Do: "PATCH " + path + query, As: "strategic", Body: mergePatch(stored, changed)}
	case 3:
		query = pick(m.Rand, []string{"?fieldManager=a", "?fieldManager=a&force=true", "?fieldManager=a&force=true&dryRun=All", "?fieldManager=differential", ""})
		return step{Do: "PATCH " + path + query, As: "apply", Body: changed}
	}
	return step{Do: "PUT " + path + query, Body: changed}
}

// mergePatch returns the merge patch from one object to another.
func mergePatch(from, to object) object {
	patch := object{}
	for key, value := range to {
		old, ok := from[key]
		oldObject, _ := old.(object)
		newObject, isObject := value.(object)
		switch {
		case ok && oldObject != nil && isObject:
			if inner := mergePatch(oldObject, newObject); len(inner) > 0 {
				patch[key] = inner
			}
		case !ok || !reflect.DeepEqual(old, value):
			patch[key] = value
		}
	}
	for key := range maps.Keys(from) {
		if _, ok := to[key]; !ok {
			patch[key] = nil
		}
	}
	return patch
}
