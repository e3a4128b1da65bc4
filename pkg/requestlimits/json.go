// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"bytes"
	"encoding/json"
	"errors"
)

// errSyntax ends the walk of a body that is not JSON, which the decoder rejects.
var errSyntax = errors.New("no JSON")

// jsonWalk reads JSON once, in order, and keeps none of it. It accepts all JSON, and
// some invalid JSON.
type jsonWalk struct {
	data []byte
	pos  int
	// elements are those of all lists so far.
	elements int
	// patch limits repeated, the number of fields so far that their object already has: the
	// error of the decoder of patches about one has the path to it, which can be long.
	patch    bool
	repeated int
}

// walkJSON checks JSON of the shape. It returns the number of elements of all
// lists.
func walkJSON(data []byte, s *shape) (elements int, err error) {
	return (&jsonWalk{data: data}).walk(s)
}

// walkJSONPatch checks a patch in JSON of the shape, like walkJSON.
func walkJSONPatch(data []byte, s *shape) (elements int, err error) {
	return (&jsonWalk{data: data, patch: true}).walk(s)
}

func (w *jsonWalk) walk(s *shape) (elements int, err error) {
	if err := w.value(s, 0); err != nil && err != errSyntax {
		return w.elements, err
	}
	return w.elements, nil
}

// value reads one value, at which the walk is or before which there is space.
func (w *jsonWalk) value(s *shape, depth int) error {
	var text string
	switch w.next() {
	case '{', '[':
		if depth == MaxDepth {
			return errTooDeep
		}
		if w.data[w.pos] == '{' {
			return w.object(s, depth+1)
		}
		return w.list(s, depth+1)
	case '"':
		quoted, err := w.quoted()
		if err != nil || s == nil || !s.quantity && !s.name {
			return err
		}
		unquoted, err := unquote(quoted)
		if err != nil {
			return err
		}
		if s.name {
			return checkName(len(unquoted))
		}
		text = string(unquoted)
	default:
		start := w.pos
		for w.pos < len(w.data) && !endsLiteral(w.data[w.pos]) {
			w.pos++
		}
		if w.pos == start {
			return errSyntax
		}
		if s == nil || !s.quantity {
			return nil
		}
		text = string(w.data[start:w.pos])
	}
	return checkQuantity(text)
}

func (w *jsonWalk) object(s *shape, depth int) error {
	w.pos++
	var seen map[string]struct{}
	if w.patch {
		seen = map[string]struct{}{}
	}
	for n := 0; ; n++ {
		switch w.next() {
		case '}':
			w.pos++
			return nil
		case ',':
			w.pos++
			w.next()
		}
		if n == MaxElements {
			return errTooManyEntries
		}
		quoted, err := w.quoted()
		if err != nil {
			return err
		}
		if w.next() != ':' {
			return errSyntax
		}
		w.pos++
		name, err := unquote(quoted)
		if err != nil {
			return err
		}
		if seen != nil {
			if _, found := seen[string(name)]; found {
				if w.repeated++; w.repeated > MaxRepeatedFields {
					return errTooManyRepeats
				}
			}
			seen[string(name)] = struct{}{}
		}
		if err := w.value(s.field(name), depth); err != nil {
			return atField(err, name, s != nil && s.dict)
		}
	}
}

func (w *jsonWalk) list(s *shape, depth int) error {
	w.pos++
	limit, of := s.limit(), s.element()
	for n := 0; ; n++ {
		switch w.next() {
		case ']':
			w.pos++
			return nil
		case ',':
			w.pos++
		}
		if n == limit {
			return tooManyElements(limit)
		}
		w.elements++
		if err := w.value(of, depth); err != nil {
			return atIndex(err, n)
		}
	}
}

// next skips space and returns the byte after it, or 0 at the end.
func (w *jsonWalk) next() byte {
	for ; w.pos < len(w.data); w.pos++ {
		switch c := w.data[w.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// quoted reads a string and returns it with its quotes.
func (w *jsonWalk) quoted() ([]byte, error) {
	if w.pos == len(w.data) || w.data[w.pos] != '"' {
		return nil, errSyntax
	}
	start := w.pos
	for w.pos++; w.pos < len(w.data); w.pos++ {
		switch w.data[w.pos] {
		case '\\':
			w.pos++
		case '"':
			w.pos++
			return w.data[start:w.pos], nil
		}
	}
	return nil, errSyntax
}

func endsLiteral(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '"', '{', '[':
		return true
	}
	return false
}

// unquote returns what a string in quotes says.
func unquote(quoted []byte) ([]byte, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return nil, errSyntax
	}
	return []byte(text), nil
}
