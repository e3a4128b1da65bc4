// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) {
	// The command sets up logging once for its process; the tests run it many
	// times.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	leaktest.Main(m)
}
