// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package corepod_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/corepod"
)

func TestSetCondition(t *testing.T) {
	before := metav1.NewTime(time.Unix(1000, 0))
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: before}
	status := &corev1.PodStatus{Conditions: []corev1.PodCondition{ready}}

	corepod.SetCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "Again"})
	if got := status.Conditions[0]; got.Reason != "Again" || !got.LastTransitionTime.Equal(&before) {
		t.Errorf("the same status: got %+v, want the new reason and the old time", got)
	}
	corepod.SetCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
	if got := status.Conditions[0]; !before.Before(&got.LastTransitionTime) {
		t.Errorf("another status: got %+v, want a new time", got)
	}
	corepod.SetCondition(status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	if len(status.Conditions) != 2 || status.Conditions[1].LastTransitionTime.IsZero() {
		t.Errorf("another type: got %+v, want it added with a time", status.Conditions)
	}
}
