// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
)

// TestUsageRules checks that neither a create nor an update can say by which rules the usage
// was computed.
func TestUsageRules(t *testing.T) {
	for _, created := range []string{"", "0", quota.Rules} {
		var q tenancy.ResourceQuota
		quota.SetRules(&q, created)
		metav1.SetMetaDataAnnotation(&q.ObjectMeta, "a", "b")
		strategy{}.PrepareForCreate(t.Context(), &q)
		if want := map[string]string{"a": "b"}; !maps.Equal(q.Annotations, want) {
			t.Errorf("created with %q: %v, want %v", created, q.Annotations, want)
		}
	}
	for _, old := range []string{"", "0", quota.Rules} {
		for _, updated := range []string{"", "0", quota.Rules} {
			var q, oldQuota tenancy.ResourceQuota
			quota.SetRules(&oldQuota, old)
			quota.SetRules(&q, updated)
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, "a", "b")
			strategy{}.PrepareForUpdate(t.Context(), &q, &oldQuota)
			want := map[string]string{"a": "b"}
			if old != "" {
				want[tenancy.UsageRulesAnnotation] = old
			}
			if !maps.Equal(q.Annotations, want) {
				t.Errorf("from %q to %q: %v, want %v", old, updated, q.Annotations, want)
			}
		}
	}
}
