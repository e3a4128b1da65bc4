// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func TestSetConditions(t *testing.T) {
	early, late := metav1.NewTime(testTime), metav1.NewTime(testTime.Add(time.Hour))
	condition := func(status corev1.ConditionStatus, message string, at metav1.Time) v1.NamespaceCondition {
		return v1.NamespaceCondition{Type: v1.NamespaceContentRemaining, Status: status, Message: message, LastTransitionTime: at}
	}
	foreign := v1.NamespaceCondition{Type: "example.com/Theirs", Status: corev1.ConditionTrue, LastTransitionTime: early}
	for _, tc := range []struct {
		name    string
		old     []v1.NamespaceCondition
		new     v1.NamespaceCondition
		want    []v1.NamespaceCondition
		changed bool
	}{
		{"added", nil,
			condition("True", "a", metav1.Time{}), []v1.NamespaceCondition{condition("True", "a", late)}, true},
		{"the same", []v1.NamespaceCondition{condition("True", "a", early)},
			condition("True", "a", metav1.Time{}), []v1.NamespaceCondition{condition("True", "a", early)}, false},
		{"another message", []v1.NamespaceCondition{condition("True", "a", early)},
			condition("True", "b", metav1.Time{}), []v1.NamespaceCondition{condition("True", "b", early)}, true},
		{"flipped", []v1.NamespaceCondition{condition("True", "a", early)},
			condition("False", "a", metav1.Time{}), []v1.NamespaceCondition{condition("False", "a", late)}, true},
		{"next to another's", []v1.NamespaceCondition{foreign},
			condition("True", "a", metav1.Time{}), []v1.NamespaceCondition{foreign, condition("True", "a", late)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status := v1.NamespaceStatus{Phase: v1.NamespaceTerminating, Conditions: tc.old}
			if changed := setConditions(&status, []v1.NamespaceCondition{tc.new}, late); changed != tc.changed {
				t.Errorf("changed: %v, want %v", changed, tc.changed)
			}
			if diff := cmp.Diff(tc.want, status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
