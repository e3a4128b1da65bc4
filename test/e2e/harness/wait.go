// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"
	"time"
)

// waitTimeout is how long a test waits for a state. Nothing asserts on how long
// it takes; only a state that never comes takes all of it.
const waitTimeout = 60 * time.Second

// Eventually waits until the condition holds, that is until it returns an empty
// string. The test fails with the last reason that it gave if it never does.
func Eventually(t testing.TB, condition func() (reason string)) {
	t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		reason := condition()
		if reason == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("waited for %s: %s", waitTimeout, reason)
		case <-tick.C:
		}
	}
}
