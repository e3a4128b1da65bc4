// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/borough-io/borough/pkg/requestlimits"
)

func TestCheckLabelSelector(t *testing.T) {
	over := repeat(MaxSelectorErrors+1, "@")
	for _, selector := range []string{
		"", "k", "!k", "k=@", "k in (@", "((((", "k in (" + repeat(MaxSelectorErrors, "@") + ")",
		repeat(2*MaxSelectorErrors, "a.io/k=v"), "k in (" + repeat(20000, "v") + "),a.io/k notin (,)",
		repeat(2*MaxSelectorErrors, "k in (@)"), // the parser ends at the first
	} {
		if err := CheckLabelSelector(selector); err != nil {
			t.Errorf("%.50q: %v", selector, err)
		}
	}
	for _, selector := range []string{
		"k in (" + over + ")", "k notin(" + over, "a=b,c in (d),k in ( " + strings.ReplaceAll(over, ",", " ,\n") + " )", "(" + over,
		"k in (" + repeat(MaxSelectorErrors+1, strings.Repeat("v", 64)) + ")",
	} {
		if err := CheckLabelSelector(selector); err == nil {
			t.Errorf("%.50q is accepted", selector)
		}
		if _, err := labels.Parse(selector); err == nil {
			t.Errorf("%.50q is a valid selector", selector)
		}
	}
}
