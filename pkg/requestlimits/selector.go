// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// CheckLabelSelector checks the text of a label selector before it is parsed. It returns
// an *Error if more values of a list are invalid than the parser may name. Of other
// errors, the parser names the first.
func CheckLabelSelector(text string) error {
	for _, list := range strings.Split(text, "(")[1:] {
		values, _, _ := strings.Cut(list, ")")
		invalid := 0
		for value := range strings.FieldsFuncSeq(values, separatesValues) {
			faults := content.IsLabelValue(value)
			if len(faults) == 0 {
				continue
			}
			if invalid++; invalid > MaxSelectorErrors {
				return &Error{Detail: fmt.Sprintf("more than %d values of a label selector are invalid: %s", MaxSelectorErrors, strings.Join(faults, "; "))}
			}
		}
	}
	return nil
}

// separatesValues reports whether the parser ends a value before the character.
func separatesValues(r rune) bool { return strings.ContainsRune(" \t\r\n,=!<>", r) }
