// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup tests that the commands by which docs/operations.md makes a
// backup, and restores it, do so: it takes them out of there and runs them.
package backup

import (
	"testing"

	"github.com/borough-io/borough/test/hostcluster"
)

func TestMain(m *testing.M) { hostcluster.Main(m) }
