// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"testing"
)

func TestSetHealthChecks(t *testing.T) {
	for name := range healthChecks {
		t.Setenv(name, "") // restores the value after the test
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "20")
	setHealthChecks()
	for name, want := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "2", "HTTP2_PING_TIMEOUT_SECONDS": "20"} {
		if got := os.Getenv(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
