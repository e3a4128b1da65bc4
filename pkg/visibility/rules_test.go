// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"slices"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
)

// TestRulesWithNames checks what users see by rules with resourceNames. A list of all
// Namespaces has the name "".
func TestRulesWithNames(t *testing.T) {
	f := newFixture(t)
	f.put(t, newNamespace("a"), newNamespace("b"))
	f.run(t)
	for _, tc := range []struct{ verbs, names, want []string }{
		{[]string{"list"}, []string{""}, []string{"a", "b"}},
		{[]string{"watch"}, []string{"x", ""}, []string{"a", "b"}},
		{[]string{"list"}, []string{"a"}, []string{"a"}},
		{[]string{"watch"}, []string{"b", "x"}, []string{"b"}},
		{[]string{"get"}, []string{""}, nil},
		{[]string{"get", "list"}, []string{"a", "x"}, []string{"a"}},
	} {
		f.put(t, newRole("named", tc.verbs, tc.names...), bind("", "n", "named", "u"))
		got, _ := list(t, f.of("u"), metainternalversion.ListOptions{})
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q of %q: got %v, want %v", tc.verbs, tc.names, got, tc.want)
		}
	}
}
