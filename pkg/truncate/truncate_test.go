// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package truncate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, tc := range []struct {
		text string
		size int
		want string
	}{
		{"", 3, ""},
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "ab..."},
		{"abcdef", 3, "..."},
		{"aäbcdef", 6, "aä..."},
		{"aäbcdef", 5, "a..."},
		{"a\nb", 3, "a\nb"},
	} {
		if got := Text(tc.text, tc.size); got != tc.want {
			t.Errorf("Text(%q, %d) = %q, want %q", tc.text, tc.size, got, tc.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, tc := range []struct {
		text string
		size int
		want string
	}{
		{" a\n\tb \r\n", 3, "a b"},
		{strings.Repeat("x", 400), 400, strings.Repeat("x", 400)},
		{"x" + strings.Repeat(" ", 50) + "y", 10, "x y"},
		{strings.Repeat("x ", 400), 10, "x x x x..."},
		{"x" + strings.Repeat(" ", 1000) + "y", 10, "x ..."},
	} {
		if got := Line(tc.text, tc.size); got != tc.want {
			t.Errorf("Line(%q, %d) = %q, want %q", tc.text, tc.size, got, tc.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\n b\tc ", 5)
	f.Add("äöü\u2028äöü", 7)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = min(max(size, len(mark)), 1000)
		got := Line(text, size)
		switch {
		case len(got) > size:
			t.Errorf("Line(%q, %d) has %d bytes", text, size, len(got))
		case strings.ContainsAny(got, "\n\r\t"):
			t.Errorf("Line(%q, %d) = %q has several lines", text, size, got)
		case utf8.ValidString(text) && !utf8.ValidString(got):
			t.Errorf("Line(%q, %d) = %q is invalid", text, size, got)
		}
	})
}
