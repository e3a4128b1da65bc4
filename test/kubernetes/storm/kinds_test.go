// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"slices"
	"testing"
)

// TestEveryKind checks that the clients create objects of every namespaced kind.
func TestEveryKind(t *testing.T) {
	for _, kind := range kinds {
		if !slices.ContainsFunc(paths, func(p path) bool { return p.effect == creates && p.resource == kind.GroupResource() }) {
			t.Errorf("no path creates %s", kind.GroupResource())
		}
	}
}
