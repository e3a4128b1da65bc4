// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates tests, in a real Kubernetes cluster, how servers obtain
// their serving certificates, and that clients notice nothing when the
// certificates are replaced.
package certificates

import (
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
