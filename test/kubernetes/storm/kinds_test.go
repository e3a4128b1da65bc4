// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"slices"
	"testing"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestEveryKind checks that the clients create objects of every namespaced kind.
func TestEveryKind(t *testing.T) {
	for _, kind := range tenancy.NamespacedKinds() {
		if !slices.ContainsFunc(paths, func(p path) bool { return p.creates && p.resource == kind.Resource }) {
			t.Errorf("no path creates %s", kind.Resource)
		}
	}
}
