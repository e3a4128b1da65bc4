// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	findings := []Finding{
		{Check: "a", Status: OK, Message: "fine"},
		{Check: "b", Status: Fault, Message: "broken <x>", Fix: "fix it"},
		{Check: "c", Status: Skipped, Message: "no"},
	}
	for _, tc := range []struct {
		write func(*strings.Builder) error
		want  string
	}{
		{func(b *strings.Builder) error { return WriteText(b, findings) }, "ok     a: fine\nFAULT  b: broken <x>\n       fix: fix it\nskip   c: no\n"},
		{func(b *strings.Builder) error { return WriteJSON(b, findings[1:2]) }, `{
  "findings": [
    {
      "check": "b",
      "status": "fault",
      "message": "broken <x>",
      "fix": "fix it"
    }
  ]
}
`},
	} {
		var got strings.Builder
		if err := tc.write(&got); err != nil {
			t.Fatal(err)
		}
		if got.String() != tc.want {
			t.Errorf("got\n%s\nwant\n%s", got.String(), tc.want)
		}
	}
}
