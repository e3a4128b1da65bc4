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
	const none = "none"
	annotations := []string{none, "", "0", quota.Rules}
	annotate := func(q *tenancy.ResourceQuota, rules string) {
		if rules != none {
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, tenancy.UsageRulesAnnotation, rules)
		}
	}
	for _, created := range annotations {
		var q tenancy.ResourceQuota
		annotate(&q, created)
		metav1.SetMetaDataAnnotation(&q.ObjectMeta, "a", "b")
		strategy{}.PrepareForCreate(t.Context(), &q)
		if want := map[string]string{"a": "b"}; !maps.Equal(q.Annotations, want) {
			t.Errorf("created with %q: %v, want %v", created, q.Annotations, want)
		}
	}
	for _, old := range annotations {
		for _, updated := range annotations {
			var q, oldQuota tenancy.ResourceQuota
			annotate(&oldQuota, old)
			annotate(&q, updated)
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, "a", "b")
			strategy{}.PrepareForUpdate(t.Context(), &q, &oldQuota)
			want := map[string]string{"a": "b"}
			if old != none && old != "" {
				want[tenancy.UsageRulesAnnotation] = old
			}
			if !maps.Equal(q.Annotations, want) {
				t.Errorf("from %q to %q: %v, want %v", old, updated, q.Annotations, want)
			}
		}
	}
}
