// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"os"
	"testing"

	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(replaceInterrupted(dir))
	}
	leaktest.Main(m)
}
