// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup tests the commands in docs/backup.md that make and restore a
// backup, and those in docs/operations.md that make room in a full etcd: it reads
// them from the documents and runs them.
package backup

import (
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
