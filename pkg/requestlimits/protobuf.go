// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// errMalformed ends the walk of invalid protobuf. The decoder reads no
// further either.
var errMalformed = errors.New("no protobuf")

// walkProtobuf checks a message of the shape.
func walkProtobuf(data []byte, s *shape) error {
	if err := walkMessage(data, s, 1); err != errMalformed {
		return err
	}
	return nil
}

func walkMessage(data []byte, s *shape, depth int) error {
	if depth > MaxDepth {
		return errTooDeep
	}
	counts := map[protowire.Number]int{}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(data)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		field, known := s.numbers[number]
		if !known {
			continue
		}
		i := counts[number]
		counts[number] += occurrences(field.shape, kind, value)
		if err := checkCount(field.shape, counts[number]); err != nil {
			return atField(err, []byte(field.name), false)
		}
		if kind != protowire.BytesType {
			continue
		}
		of := field.shape
		if of.list {
			of = of.elem
		}
		if err := walkBytes(value, of, depth); err != nil {
			if field.list {
				err = atIndex(err, i)
			}
			return atField(err, []byte(field.name), false)
		}
	}
	return nil
}

// occurrences is the number of elements that one field adds to a list. Numbers
// may be packed into one field; each ends in a byte without the top bit.
func occurrences(s *shape, kind protowire.Type, value []byte) int {
	if !s.varint || kind != protowire.BytesType {
		return 1
	}
	n := 0
	for _, b := range value {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// checkCount checks how often a field has come. The decoder merges a message
// that comes again with the one before, so that their lists add up; no encoder
// writes that.
func checkCount(s *shape, n int) error {
	switch {
	case s.list && n > s.limit():
		return tooManyElements(s.limit())
	case s.dict && n > MaxElements:
		return errTooManyEntries
	case !s.list && !s.dict && s.numbers != nil && n > 1:
		return &Error{Detail: "must be given at most once"}
	}
	return nil
}

func walkBytes(value []byte, s *shape, depth int) error {
	switch {
	case s.numbers != nil:
		return walkMessage(value, s, depth+1)
	case s.quantity:
		return checkQuantity(string(value))
	case s.name:
		// The continue tokens of lists have names in JSON, which would change them.
		if !utf8.Valid(value) {
			return errNotUTF8
		}
		return checkName(len(value))
	case s.json:
		_, err := walkJSON(value, nil)
		return err
	}
	return nil
}

func checkQuantity(text string) error {
	if detail := CheckQuantity(text); detail != "" {
		return &Error{Detail: detail}
	}
	return nil
}

func checkName(length int) error {
	if length > MaxNameLength {
		return errTooLong
	}
	return nil
}

var (
	errTooLong        = &Error{Detail: fmt.Sprintf("must have at most %d bytes", MaxNameLength)}
	errNotUTF8        = &Error{Detail: "must be valid UTF-8"}
	errTooDeep        = &Error{Detail: fmt.Sprintf("objects and lists must be nested at most %d deep", MaxDepth)}
	errTooManyRepeats = &Error{Detail: fmt.Sprintf("must not repeat more than %d fields", MaxRepeatedFields)}
	errTooManyEntries = &Error{Detail: fmt.Sprintf("must have at most %d entries", MaxElements)}
)

func tooManyElements(limit int) *Error {
	return &Error{Detail: fmt.Sprintf("must have at most %d elements", limit)}
}
