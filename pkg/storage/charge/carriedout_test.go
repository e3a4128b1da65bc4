// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"testing"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// TestForgetAfterCreate checks that a server that has created a quota, and not read it yet,
// reads the quotas before it charges another write: the comparison that none was created since
// that revision would hold, and the write would not be counted.
func TestForgetAfterCreate(t *testing.T) {
	for resource, want := range map[string]int64{"resourcequotas": 0, "pods": 8} {
		ns := &namespace{pipeline: newPipeline()}
		before := &known{revision: 7, quotas: []storedQuota{{key: "q", revision: 7}}}
		ns.learn(before)
		c := &Charge{
			charger:   &Charger{quotas: stored.Resource{GroupResource: tenancy.Resource("resourcequotas")}},
			change:    &quota.Change{Resource: tenancy.Resource(resource)},
			namespace: ns, base: before, next: before,
		}
		c.carriedOut(8)
		if got := ns.latest(); got.revision != want {
			t.Errorf("after a write of %s, the quotas are known at %d, want %d", resource, got.revision, want)
		}
	}
}
