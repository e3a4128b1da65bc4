// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates tests, in a real Kubernetes cluster, how servers come by
// the certificates that they serve with, and that nobody notices when they get
// others.
package certificates

import (
	"testing"

	"github.com/borough-io/borough/test/hostcluster"
)

func TestMain(m *testing.M) { hostcluster.Main(m) }
