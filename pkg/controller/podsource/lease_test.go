// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"testing"
)

// TestNoLease has the Lease in a Namespace that is missing. The reason is not another process.
func TestNoLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.LeaderElection = leaderElection
	config.LeaderElection.ResourceNamespace = "missing"
	want := "did not get the Lease missing/" + f.leaseName() + " within 1.3s: the log says why; --leader-elect-resource-namespace sets its namespace"
	if err := f.new(config).Converge(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
