// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// CheckLabelSelector checks the text of a label selector before it is parsed. It returns
// an *Error if it has too many terms, or if more values of a list are invalid than the
// parser may name. Of other errors, the parser names the first.
func CheckLabelSelector(text string) error {
	if err := checkTerms("label", text); err != nil {
		return err
	}
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

// CheckFieldSelector checks the text of a field selector before it is parsed. It returns
// an *Error if it has too many terms.
func CheckFieldSelector(text string) error { return checkTerms("field", text) }

// checkTerms counts what is between commas, which is at least the number of terms.
func checkTerms(kind, text string) error {
	if strings.Count(text, ",") >= MaxSelectorTerms {
		return &Error{Detail: fmt.Sprintf("a %s selector has more than %d requirements and values", kind, MaxSelectorTerms)}
	}
	return nil
}

// separatesValues reports whether the parser ends a value before the character.
func separatesValues(r rune) bool { return strings.ContainsRune(" \t\r\n,=!<>", r) }
