// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// slot is a place in a JSON value.
type slot struct {
	path  []any // keys and indices
	value any   // that is there
}

func (s slot) String() string {
	var b strings.Builder
	for _, step := range s.path {
		if i, ok := step.(int); ok {
			fmt.Fprintf(&b, "[%d]", i)
		} else {
			fmt.Fprintf(&b, ".%s", step)
		}
	}
	return b.String()
}

// slots are all places in a value but the value itself, in one order.
func slots(value any) []slot { return below(nil, value) }

func below(path []any, value any) (found []slot) {
	add := func(step, value any) {
		path := append(slices.Clip(path), step)
		found = append(append(found, slot{path, value}), below(path, value)...)
	}
	switch value := value.(type) {
	case obj:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			add(key, value[key])
		}
	case list:
		for i := range value {
			add(i, value[i])
		}
	}
	return found
}

// replace returns a copy of a value that has another in this place.
func (s slot) replace(in, with any) any { return replaced(in, s.path, with) }

func replaced(in any, path []any, with any) any {
	if len(path) == 0 {
		return with
	}
	switch in := in.(type) {
	case obj:
		out := maps.Clone(in)
		key := path[0].(string)
		out[key] = replaced(in[key], path[1:], with)
		return out
	case list:
		out := slices.Clone(in)
		i := path[0].(int)
		out[i] = replaced(in[i], path[1:], with)
		return out
	}
	return in
}
