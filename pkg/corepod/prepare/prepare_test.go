// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/corepod/features"
	"github.com/borough-io/borough/pkg/corepod/prepare"
)

// TestEveryWriteDropsUnused writes, in every way, what the way is for.
func TestEveryWriteDropsUnused(t *testing.T) {
	uses := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"pod.alpha.kubernetes.io/init-containers": "[]", "pod.beta.kubernetes.io/init-container-statuses": "[]", "kept": "",
		}},
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
		if _, kept := pod.Annotations["kept"]; name != "resize" && name != "ephemeralcontainers" && (!kept || len(pod.Annotations) != 1) {
			t.Errorf("%s: annotations %v", name, pod.Annotations)
		}
	}
}

// TestOmittedFieldsAreKept writes as a client that does not know the fields.
func TestOmittedFieldsAreKept(t *testing.T) {
	old := &corev1.Pod{
		Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}},
		Status: corev1.PodStatus{
			QOSClass:                    corev1.PodQOSBurstable,
			ObservedGeneration:          3,
			ResourceClaimStatuses:       []corev1.PodResourceClaimStatus{{Name: "c"}},
			ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"},
		},
	}
	for name, write := range map[string]func(newPod, oldPod *corev1.Pod){
		"update": prepare.ForUpdate, "status": prepare.ForStatusUpdate, "resize": prepare.ForResize,
	} {
		pod := &corev1.Pod{}
		write(pod, old)
		if diff := cmp.Diff(old, pod); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	pod := &corev1.Pod{Status: corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{}}}
	prepare.ForStatusUpdate(pod, old)
	if len(pod.Status.ResourceClaimStatuses) > 0 {
		t.Errorf("an empty list of claims does not replace %v", pod.Status.ResourceClaimStatuses)
	}
}

// TestPodResourcesAreCompleted checks that a Pod gets the resources and the class that
// follow from all its containers, when it is created and when it is resized.
func TestPodResourcesAreCompleted(t *testing.T) {
	list := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	both := corev1.ResourceRequirements{Requests: list, Limits: list}
	cpu := &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": list["cpu"]}}

	pod := &corev1.Pod{Spec: corev1.PodSpec{Resources: cpu.DeepCopy(), Containers: []corev1.Container{{Resources: both}}}}
	prepare.ForCreate(t.Context(), pod)
	if diff := cmp.Diff(&both, pod.Spec.Resources); diff != "" || pod.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("create: class %s, resources (-want +got):\n%s", pod.Status.QOSClass, diff)
	}

	old := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: both}}}}
	pod = old.DeepCopy()
	pod.Spec.Resources = cpu.DeepCopy()
	prepare.ForResize(pod, old)
	if diff := cmp.Diff(&both, pod.Spec.Resources); diff != "" {
		t.Errorf("resize (-want +got):\n%s", diff)
	}
}
