// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployment deploys Borough into a real Kubernetes cluster as in
// docs/deploy.md, with kubectl apply -k artifacts/deploy, and runs the applied
// objects: the processes have their arguments, volumes, probes, identities and
// rights.
package deployment

import (
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
