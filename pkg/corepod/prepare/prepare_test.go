// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/borough-io/borough/pkg/corepod/features"
	"github.com/borough-io/borough/pkg/corepod/prepare"
)

// TestEveryWriteDropsDisabledFields writes, in every way, what the way is for.
func TestEveryWriteDropsDisabledFields(t *testing.T) {
	uses := &corev1.Pod{
		Spec: corev1.PodSpec{
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: new("g")},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Lifecycle: &corev1.Lifecycle{StopSignal: new(corev1.SIGTERM)},
			}}},
		},
		Status: corev1.PodStatus{VolumeHealth: []corev1.PodVolumeHealth{{Name: "v"}}},
	}
	old := &corev1.Pod{}
	for name, write := range map[string]func(*corev1.Pod){
		"create":              func(pod *corev1.Pod) { prepare.ForCreate(t.Context(), pod) },
		"update":              func(pod *corev1.Pod) { prepare.ForUpdate(pod, old) },
		"status":              func(pod *corev1.Pod) { prepare.ForStatusUpdate(pod, old) },
		"resize":              func(pod *corev1.Pod) { prepare.ForResize(pod, old) },
		"ephemeralcontainers": func(pod *corev1.Pod) { prepare.ForEphemeralContainersUpdate(pod, old) },
	} {
		pod := uses.DeepCopy()
		write(pod)
		without := pod.DeepCopy()
		features.DropDisabled(without, nil)
		if !apiequality.Semantic.DeepEqual(pod, without) {
			t.Errorf("%s keeps %s", name, cmp.Diff(without, pod))
		}
	}
}
