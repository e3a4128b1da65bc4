// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/diff"
)

// maxDifferenceLines is the number of lines up to which the objects of a request are
// compared line by line, which takes time that grows with the square of it. A Pod of ten
// containers has some hundreds.
const maxDifferenceLines = 2000

// differences shows where objects differ, up to maxDifferenceLines. The zero value is ready
// to use.
type differences struct{ lines int }

// of shows where two objects differ, unless there is too much to compare.
func (d *differences) of(old, updated any) string {
	most := 0
	for _, object := range []any{old, updated} {
		text, err := json.MarshalIndent(object, "", " ")
		if err != nil {
			return fmt.Sprintf("(the difference can't be shown: %v)", err)
		}
		most = max(most, bytes.Count(text, []byte("\n"))+1)
	}
	if d.lines+most > maxDifferenceLines {
		return fmt.Sprintf("(the difference is not shown: there are more than %d lines to compare)", maxDifferenceLines)
	}
	d.lines += most
	return diff.Diff(old, updated)
}
