// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"slices"
	"testing"

	"github.com/borough-io/borough/pkg/apis/kubernetes"
	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestPurgeOrder checks that the kinds behind the quotas are in the order of their stages.
// A purge deletes them in the order of the list, so a stage does not hold up what is
// before it.
func TestPurgeOrder(t *testing.T) {
	kinds := append(tenancy.NamespacedKinds(), kubernetes.NamespacedKinds()...)
	if kinds[0].Kind != "ResourceQuota" {
		t.Errorf("the first kind is %s, want ResourceQuota", kinds[0].Kind)
	}
	if !slices.IsSortedFunc(kinds[1:], func(a, b tenancy.NamespacedKind) int { return a.PurgeStage - b.PurgeStage }) {
		t.Errorf("kinds are not in the order of their stages: %v", kinds[1:])
	}
}
