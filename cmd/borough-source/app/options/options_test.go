// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import "testing"

// TestValidateInOrder checks that invalid flags are always listed in the same order.
func TestValidateInOrder(t *testing.T) {
	o := New()
	o.Namespace, o.LeaderElection.ResourceNamespace = "A", "B"
	o.HTTP.Timeout, o.OnceTimeout = 0, 0
	want := o.Validate().Error()
	for range 20 {
		if got := o.Validate().Error(); got != want {
			t.Fatalf("got\n%s\nafter\n%s", got, want)
		}
	}
}
