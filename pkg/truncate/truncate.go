// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package truncate bounds the length of texts that others wrote, such as errors.
package truncate

import "strings"

const mark = "..."

// Text returns a text of at most size bytes, which must be at least 3. If it was longer, it
// ends in dots.
func Text(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size-len(mark)], "") + mark // the cut can be in a character
}

// Line is Text, in one line. Of a text that is mostly white space, it shows less.
func Line(text string, size int) string {
	const most = 8 // times the size, of what is read
	return Text(strings.Join(strings.Fields(Text(text, most*size)), " "), size)
}
