// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"
)

// TestUsages checks that the usages that differ from those of the library are of flags that
// exist.
func TestUsages(t *testing.T) {
	got := map[string]string{}
	sets := New().Flags()
	for name := range usages {
		got[name] = usages[name]
	}
	for name, usage := range standaloneUsages {
		got[name] = "With --standalone, " + usage
	}
	for name, want := range got {
		found := false
		for _, set := range sets.FlagSets {
			if flag := set.Lookup(name); flag != nil {
				found = strings.HasSuffix(flag.Usage, want)
			}
		}
		if !found {
			t.Errorf("--%s does not exist, or its usage does not end with %q", name, want)
		}
	}
}
