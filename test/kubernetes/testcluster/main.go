// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// Main is harness.Main for a package whose tests share nothing. It builds all
// programs before a test waits for a process.
func Main(m *testing.M) {
	harness.Main(m, func(m *testing.M) (code int, err error) {
		if _, err := harness.Binary("borough-apiserver"); err != nil {
			return 0, err
		}
		if _, err := Binary("etcd"); err != nil {
			return 0, err
		}
		return m.Run(), nil
	})
}
