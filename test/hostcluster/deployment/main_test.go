// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployment deploys Borough into a real Kubernetes cluster as
// docs/deploy.md says, with kubectl apply -k artifacts/deploy, and runs what the
// cluster then holds: the arguments, volumes, probes, identities and rights are
// those of the applied objects.
package deployment

import (
	"testing"

	"github.com/borough-io/borough/test/hostcluster"
)

func TestMain(m *testing.M) { hostcluster.Main(m) }
