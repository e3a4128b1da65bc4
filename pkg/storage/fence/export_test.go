// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import "testing"

// SplitKey is splitKey.
var SplitKey = splitKey

// TurnOff turns the fences that are made during the test off.
func TurnOff(t testing.TB) {
	off = "true"
	t.Cleanup(func() { off = "" })
}
