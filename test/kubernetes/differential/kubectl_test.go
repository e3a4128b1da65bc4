// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"testing"

	"github.com/borough-io/borough/test/kubernetes/differential/kubectl"
)

// TestKubectl runs scripts of kubectl commands on both sides.
func TestKubectl(t *testing.T) { kubectl.Compare(t, pair) }
