// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/diff"
)

// maxDifferenceLines is the number of lines up to which two objects are compared
// line by line, which takes time that grows with the square of it. A Pod of ten
// containers has some hundreds.
const maxDifferenceLines = 2000

// difference shows where two objects differ, unless they are too large.
func difference(old, updated any) string {
	for _, object := range []any{old, updated} {
		text, err := json.MarshalIndent(object, "", " ")
		if err != nil {
			return fmt.Sprintf("(the difference can't be shown: %v)", err)
		}
		if lines := bytes.Count(text, []byte("\n")) + 1; lines > maxDifferenceLines {
			return fmt.Sprintf("(the difference is not shown: there are more than %d lines to compare)", maxDifferenceLines)
		}
	}
	return diff.Diff(old, updated)
}
