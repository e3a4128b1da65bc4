// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import "testing"

// TurnOff disables the fences that are created during the test.
func TurnOff(t testing.TB) {
	off = "true"
	t.Cleanup(func() { off = "" })
}
