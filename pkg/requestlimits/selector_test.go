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
		repeat(2*MaxSelectorErrors, "a.io/k=v"), "k in (" + repeat(MaxSelectorTerms-2, "v") + "),a.io/k notin (,)", repeat(MaxSelectorTerms, "!k"),
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

// TestSelectorTerms checks the bound on what a selector compares with each object.
func TestSelectorTerms(t *testing.T) {
	for _, test := range []struct {
		check func(string) error
		term  string
	}{{CheckLabelSelector, "!k"}, {CheckFieldSelector, "metadata.name!=x"}} {
		if err := test.check(repeat(MaxSelectorTerms, test.term)); err != nil {
			t.Errorf("%d times %q: %v", MaxSelectorTerms, test.term, err)
		}
		if err := test.check(repeat(MaxSelectorTerms+1, test.term)); err == nil {
			t.Errorf("%d times %q is accepted", MaxSelectorTerms+1, test.term)
		}
	}
	if err := CheckLabelSelector("k in (" + repeat(MaxSelectorTerms+1, "v") + ")"); err == nil {
		t.Error("a requirement with more values is accepted")
	}
}
