// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "os"

// The library's clients send a ping on a connection on which they have received
// nothing for a time, and close it when the ping is not answered. The times of the
// library, 30 and 15 seconds, leave a process without the cluster for 45 seconds when a
// connection stalls.
var healthChecks = map[string]string{
	// Less than the time for which package delegation lets a connection receive nothing.
	// Otherwise it would close those to a cluster that is slow.
	"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "2",
	"HTTP2_PING_TIMEOUT_SECONDS":      "3",
}

// setHealthChecks makes clients close connections that stall within 5 seconds, unless
// the environment has other times. It must be called before the first client is
// created; the library takes the times only from the environment.
func setHealthChecks() {
	for name, value := range healthChecks {
		if _, ok := os.LookupEnv(name); !ok {
			// It fails only for an invalid name.
			_ = os.Setenv(name, value)
		}
	}
}
