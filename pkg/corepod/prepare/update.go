// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/corepod/defaults"
)

// ForUpdate keeps the status.
func ForUpdate(newPod, oldPod *corev1.Pod) {
	newPod.Status = oldPod.Status
	keepPodResources(newPod, oldPod)
	dropUnused(newPod, oldPod)
	bumpGeneration(newPod, oldPod)
}

// keepPodResources keeps the resources of the Pod itself if a client that does not know
// them omits them.
func keepPodResources(newPod, oldPod *corev1.Pod) {
	if newPod.Spec.Resources == nil {
		newPod.Spec.Resources = oldPod.Spec.Resources.DeepCopy()
	}
}

// ForStatusUpdate resets everything except the status, labels, annotations and
// finalizers. It keeps the QoS class, observed generations and the status of claims if
// a client that does not know them omits them. An empty list is not an omission.
func ForStatusUpdate(newPod, oldPod *corev1.Pod) {
	newPod.Spec = oldPod.Spec
	newPod.DeletionTimestamp = nil
	newPod.OwnerReferences = oldPod.OwnerReferences
	if newPod.Status.QOSClass == "" {
		newPod.Status.QOSClass = oldPod.Status.QOSClass
	}
	if newPod.Status.ResourceClaimStatuses == nil {
		newPod.Status.ResourceClaimStatuses = oldPod.Status.ResourceClaimStatuses
	}
	if newPod.Status.ExtendedResourceClaimStatus == nil {
		newPod.Status.ExtendedResourceClaimStatus = oldPod.Status.ExtendedResourceClaimStatus
	}
	keepObservedGenerations(&newPod.Status, &oldPod.Status)
	dropUnused(newPod, oldPod)
}

// keepObservedGenerations puts back the observed generations that were left out.
// Conditions of one type may be given more than once; they are matched in order.
func keepObservedGenerations(newStatus, oldStatus *corev1.PodStatus) {
	if newStatus.ObservedGeneration == 0 {
		newStatus.ObservedGeneration = oldStatus.ObservedGeneration
	}
	observed := map[corev1.PodConditionType][]int64{}
	for _, old := range oldStatus.Conditions {
		observed[old.Type] = append(observed[old.Type], old.ObservedGeneration)
	}
	for i := range newStatus.Conditions {
		condition := &newStatus.Conditions[i]
		of := observed[condition.Type]
		if len(of) == 0 {
			continue
		}
		if condition.ObservedGeneration == 0 {
			condition.ObservedGeneration = of[0]
		}
		observed[condition.Type] = of[1:]
	}
}

// ForResize keeps all but the resources of the Pod and of its containers and how they
// are resized. Containers that are not those of the stored Pod are left for validation
// to refuse.
func ForResize(newPod, oldPod *corev1.Pod) {
	if len(newPod.Spec.Containers) == len(oldPod.Spec.Containers) && len(newPod.Spec.InitContainers) == len(oldPod.Spec.InitContainers) {
		spec := oldPod.Spec
		spec.Resources = newPod.Spec.Resources
		spec.Containers = resized(newPod.Spec.Containers, oldPod.Spec.Containers)
		spec.InitContainers = resized(newPod.Spec.InitContainers, oldPod.Spec.InitContainers)
		newPod.Spec = spec
		newPod.Status = oldPod.Status
		metav1.ResetObjectMetaForStatus(&newPod.ObjectMeta, &oldPod.ObjectMeta)
	}
	keepPodResources(newPod, oldPod)
	defaults.PodResources(&newPod.Spec)
	dropUnused(newPod, oldPod)
	bumpGeneration(newPod, oldPod)
}

// resized returns the old containers with the resources of the new ones, or the
// new ones where the names differ.
func resized(newContainers, oldContainers []corev1.Container) []corev1.Container {
	containers := slices.Clone(oldContainers)
	for i := range containers {
		if containers[i].Name != newContainers[i].Name {
			return newContainers
		}
		containers[i].Resources = newContainers[i].Resources
		containers[i].ResizePolicy = newContainers[i].ResizePolicy
	}
	return containers
}

// ForEphemeralContainersUpdate keeps all but the ephemeral containers.
func ForEphemeralContainersUpdate(newPod, oldPod *corev1.Pod) {
	spec := oldPod.Spec
	spec.EphemeralContainers = newPod.Spec.EphemeralContainers
	newPod.Spec = spec
	newPod.Status = oldPod.Status
	metav1.ResetObjectMetaForStatus(&newPod.ObjectMeta, &oldPod.ObjectMeta)
	dropUnused(newPod, oldPod)
	bumpGeneration(newPod, oldPod)
}

// bumpGeneration counts a change of the spec.
func bumpGeneration(newPod, oldPod *corev1.Pod) {
	if !apiequality.Semantic.DeepEqual(newPod.Spec, oldPod.Spec) {
		newPod.Generation++
	}
}
