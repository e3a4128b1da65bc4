// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"encoding/json"
	"html"
	"strconv"
	"testing"
)

// FuzzEscapedSize compares the size with that of a text that is escaped as in an error.
func FuzzEscapedSize(f *testing.F) {
	for _, text := range []string{"", "abc", "<>&", "\"\\'", "\x00\x1f\x7f", "\xff\xfe", "é字\u2028\u00a0", "\U0001f600\U000e0001", "\ufffd"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const quotes = len(`"\"\""`)
		encoded, err := json.Marshal(strconv.Quote(html.EscapeString(text)))
		if err != nil {
			t.Fatal(err)
		}
		// EscapeString also escapes quotes, which the library does not.
		for _, r := range text {
			if r == '"' || r == '\'' {
				return
			}
		}
		if size := EscapedSize(text); len(encoded)-quotes > size {
			t.Errorf("%q has %d bytes when it is escaped, not %d: %s", text, len(encoded)-quotes, size, encoded)
		}
	})
}
