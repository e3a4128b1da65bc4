// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"strconv"
	"unicode/utf8"
)

// EscapedSize returns how many bytes a part of a path has in an error in JSON, at most: the
// library quotes it, and replaces some characters by entities.
func EscapedSize(text string) int {
	size := 0
	for _, r := range text {
		switch {
		case r == '&': // \u0026amp;
			size += 10
		case r == '<', r == '>': // such as \u0026lt;
			size += 9
		case r == '"', r == '\\':
			size += 4
		case r == utf8.RuneError: // an invalid byte, such as \\xff
			size += 5
		case strconv.IsPrint(r):
			size += utf8.RuneLen(r)
		case r > 0xffff: // such as \\U000e0001
			size += 11
		default: // such as \\u2028
			size += 7
		}
	}
	return size
}
