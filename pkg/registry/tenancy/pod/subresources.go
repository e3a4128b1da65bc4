// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
)

// PrepareForUpdate resets everything except the status, labels, annotations and
// finalizers. It keeps the QoS class and observed generations if a client that does
// not know them omits them.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newPod, oldPod := obj.(*tenancy.Pod), old.(*tenancy.Pod)
	newPod.Spec = oldPod.Spec
	newPod.DeletionTimestamp = nil
	newPod.OwnerReferences = oldPod.OwnerReferences
	if newPod.Status.QOSClass == "" {
		newPod.Status.QOSClass = oldPod.Status.QOSClass
	}
	keepObservedGenerations(&newPod.Status, &oldPod.Status)
	dropGated(newPod, oldPod)
}

// ValidateUpdate checks an update of the status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodStatusUpdate(obj.(*tenancy.Pod), old.(*tenancy.Pod))
}

// WarningsOnUpdate warns of addresses that are not in canonical form.
func (StatusStrategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	status := &obj.(*tenancy.Pod).Status
	path := field.NewPath("status")
	var w warnings
	for i, ip := range status.PodIPs {
		w.addPlain(utilvalidation.GetWarningsForIP(path.Child("podIPs").Index(i).Child("ip"), ip.IP)...)
	}
	for i, ip := range status.HostIPs {
		w.addPlain(utilvalidation.GetWarningsForIP(path.Child("hostIPs").Index(i).Child("ip"), ip.IP)...)
	}
	return w
}

// GetResetFields names what PrepareForUpdate keeps.
func (StatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		apiVersion: fieldpath.NewSet(
			fieldpath.MakePathOrDie("spec"),
			fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
			fieldpath.MakePathOrDie("metadata", "ownerReferences"),
		),
	}
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

// PrepareForUpdate keeps all but the resources of the Pod and of its containers
// and how they are resized. Containers that are not those of the stored Pod are
// left for validation to refuse.
func (ResizeStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newPod, oldPod := obj.(*tenancy.Pod), old.(*tenancy.Pod)
	if sameLength(newPod.Spec.Containers, oldPod.Spec.Containers) && sameLength(newPod.Spec.InitContainers, oldPod.Spec.InitContainers) {
		spec := oldPod.Spec
		spec.Resources = newPod.Spec.Resources
		spec.Containers = resized(newPod.Spec.Containers, oldPod.Spec.Containers)
		spec.InitContainers = resized(newPod.Spec.InitContainers, oldPod.Spec.InitContainers)
		newPod.Spec = spec
		newPod.Status = oldPod.Status
		metav1.ResetObjectMetaForStatus(&newPod.ObjectMeta, &oldPod.ObjectMeta)
	}
	dropGated(newPod, oldPod)
	bumpGeneration(newPod, oldPod)
}

func sameLength(a, b []corev1.Container) bool { return len(a) == len(b) }

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

// ValidateUpdate checks a resize.
func (ResizeStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodResize(obj.(*tenancy.Pod), old.(*tenancy.Pod))
}

// PrepareForUpdate keeps all but the ephemeral containers.
func (EphemeralContainersStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newPod, oldPod := obj.(*tenancy.Pod), old.(*tenancy.Pod)
	spec := oldPod.Spec
	spec.EphemeralContainers = newPod.Spec.EphemeralContainers
	newPod.Spec = spec
	newPod.Status = oldPod.Status
	metav1.ResetObjectMetaForStatus(&newPod.ObjectMeta, &oldPod.ObjectMeta)
	dropGated(newPod, oldPod)
	bumpGeneration(newPod, oldPod)
}

// ValidateUpdate checks that ephemeral containers are only added.
func (EphemeralContainersStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodEphemeralContainersUpdate(obj.(*tenancy.Pod), old.(*tenancy.Pod))
}
