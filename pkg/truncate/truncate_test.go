// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package truncate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct {
		truncate func(string, int) string
		text     string
		size     int
		want     string
	}{
		"empty":                {Text, "", 3, ""},
		"as long":              {Text, "abcdef", 6, "abcdef"},
		"longer":               {Text, "abcdef", 5, "ab..."},
		"nothing left":         {Text, "abcdef", 3, "..."},
		"after a character":    {Text, "aäbcdef", 6, "aä..."},
		"in a character":       {Text, "aäbcdef", 5, "a..."},
		"lines":                {Text, "a\nb", 3, "a\nb"},
		"one line":             {Line, " a\n\tb \r\n", 3, "a b"},
		"a line as long":       {Line, strings.Repeat("x", 400), 400, strings.Repeat("x", 400)},
		"much white space":     {Line, "x" + strings.Repeat(" ", 50) + "y", 10, "x y"},
		"many words":           {Line, strings.Repeat("x ", 400), 10, "x x x x..."},
		"too much white space": {Line, "x" + strings.Repeat(" ", 1000) + "y", 10, "x ..."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.truncate(tc.text, tc.size); got != tc.want {
				t.Errorf("%q, %d: got %q, want %q", tc.text, tc.size, got, tc.want)
			}
		})
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
