// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
	"github.com/borough-io/borough/pkg/corepod/qos"
)

// ValidatePodResize checks that only the cpu and memory of containers or of the
// whole Pod change, that none is taken away, and that the QoS class stays.
func ValidatePodResize(newPod, oldPod *corev1.Pod) field.ErrorList {
	switch {
	case isMirror(&oldPod.ObjectMeta):
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	case isWindows(&oldPod.Spec):
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	path := field.NewPath("spec")
	errs := ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validatePod(newPod, oldPod)...)
	errs = append(errs, validateSums(corepod.InitSums(&newPod.Spec), corepod.InitSums(&oldPod.Spec), corepod.MaxInitSums, path.Child("initContainers"))...)

	class := oldPod.Status.QOSClass
	if class == "" {
		class = qos.ComputePodQOS(oldPod)
	}
	if class != qos.ComputePodQOS(newPod) {
		errs = append(errs, field.Invalid(path, newPod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing"))
	}
	if !nodeCanResize(oldPod) {
		errs = append(errs, field.Forbidden(path, "Pod running on node without support for resize"))
	}

	// What may change is set back, so that nothing may differ in what is left.
	rest, oldSpec := newPod.Spec.DeepCopy(), &oldPod.Spec
	if namesResources(newPod.Spec.Resources) || namesResources(oldSpec.Resources) {
		errs = append(errs, validatePodLevelResize(newPod.Spec.Resources, oldSpec.Resources, path)...)
		rest.Resources = withOldPodResources(rest.Resources, oldSpec.Resources)
	}
	if orderErrs := validateSameContainers(rest, oldSpec, path); len(orderErrs) > 0 {
		return append(errs, orderErrs...)
	}
	for i := range rest.InitContainers {
		errs = append(errs, validateResourcesKept(&rest.InitContainers[i].Resources, &oldSpec.InitContainers[i].Resources, path.Child("initContainers").Index(i).Child("resources"))...)
	}
	for i := range rest.Containers {
		errs = append(errs, validateResourcesKept(&rest.Containers[i].Resources, &oldSpec.Containers[i].Resources, path.Child("containers").Index(i).Child("resources"))...)
	}
	for i := range rest.Containers {
		if setBackResources(&rest.Containers[i], &oldSpec.Containers[i]) {
			errs = append(errs, field.Forbidden(path, "only cpu and memory resources are mutable"))
		}
	}
	for i := range rest.InitContainers {
		container, old, path := &rest.InitContainers[i], &oldSpec.InitContainers[i], path.Child("initContainers").Index(i)
		resized := !apiequality.Semantic.DeepEqual(container, old)
		if setBackResources(container, old) {
			errs = append(errs, field.Forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable"))
		}
		if resized && !corepod.IsSidecar(container) {
			for _, policy := range container.ResizePolicy {
				if policy.RestartPolicy == corev1.RestartContainer {
					errs = append(errs, field.Forbidden(path, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"))
				}
			}
		}
	}
	if len(errs) == 0 && !apiequality.Semantic.DeepEqual(rest, oldSpec) {
		errs = append(errs, field.Forbidden(path, "only cpu and memory resources are mutable"))
	}
	return errs
}

// nodeCanResize reports whether the Pod's node is known to resize Pods, by the
// resources that it reports. Nothing is known before a container runs.
func nodeCanResize(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.State.Running != nil {
			return status.Resources != nil
		}
	}
	return true
}

func namesResources(r *corev1.ResourceRequirements) bool {
	return r != nil && len(r.Requests)+len(r.Limits) > 0
}

func validatePodLevelResize(newResources, oldResources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if oldResources != nil {
		path := path.Child("resources")
		if newResources == nil {
			return field.ErrorList{field.Forbidden(path, "pod-level resources cannot be removed")}
		}
		if anyRemoved(newResources.Requests, oldResources.Requests) {
			errs = append(errs, field.Forbidden(path.Child("requests"), "pod-level resource requests cannot be removed"))
		}
		if anyRemoved(newResources.Limits, oldResources.Limits) {
			errs = append(errs, field.Forbidden(path.Child("limits"), "pod-level resource limits cannot be removed"))
		}
	}
	if !apiequality.Semantic.DeepEqual(withOldPodResources(newResources, oldResources), oldResources) {
		errs = append(errs, field.Forbidden(path, "only cpu and memory resources are mutable at pod-level"))
	}
	return errs
}

// withOldPodResources sets cpu and memory back to the old ones. Without old ones
// and without anything else, nothing is left.
func withOldPodResources(r, old *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if r == nil {
		return nil
	}
	var before corev1.ResourceRequirements
	if old != nil {
		before = *old
	}
	rest := &corev1.ResourceRequirements{
		Requests: withOldCPUAndMemory(r.Requests, before.Requests),
		Limits:   withOldCPUAndMemory(r.Limits, before.Limits),
		Claims:   r.Claims,
	}
	if old == nil && len(rest.Requests)+len(rest.Limits)+len(rest.Claims) == 0 {
		return nil
	}
	return rest
}

func withOldCPUAndMemory(list, old corev1.ResourceList) corev1.ResourceList {
	rest := make(corev1.ResourceList, len(list))
	maps.Copy(rest, list)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, set := old[name]; set {
			rest[name] = quantity
		} else {
			delete(rest, name)
		}
	}
	return rest
}

// setBackResources sets cpu and memory back to the old ones and reports whether the
// container still differs.
func setBackResources(c, old *corev1.Container) bool {
	c.Resources = corev1.ResourceRequirements{
		Requests: withOldCPUAndMemory(c.Resources.Requests, old.Resources.Requests),
		Limits:   withOldCPUAndMemory(c.Resources.Limits, old.Resources.Limits),
		Claims:   c.Resources.Claims,
	}
	return !apiequality.Semantic.DeepEqual(c, old)
}

// validateSameContainers checks that the containers are the same in the same
// order, on which the other checks depend.
func validateSameContainers(newSpec, oldSpec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name    string
		is, was []corev1.Container
	}{
		{"containers", newSpec.Containers, oldSpec.Containers},
		{"initContainers", newSpec.InitContainers, oldSpec.InitContainers},
	} {
		path := path.Child(list.name)
		if len(list.is) != len(list.was) {
			errs = append(errs, field.Forbidden(path, list.name+" may not be added or removed on resize"))
			continue
		}
		for i := range list.is {
			if list.is[i].Name != list.was[i].Name {
				errs = append(errs, field.Forbidden(path.Index(i).Child("name"), list.name+" may not be renamed or reordered on resize"))
			}
		}
	}
	return errs
}

func validateResourcesKept(r, old *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if anyRemoved(r.Requests, old.Requests) {
		errs = append(errs, field.Forbidden(path.Child("requests"), "resource requests cannot be removed"))
	}
	if anyRemoved(r.Limits, old.Limits) {
		errs = append(errs, field.Forbidden(path.Child("limits"), "resource limits cannot be removed"))
	}
	return errs
}

func anyRemoved(list, old corev1.ResourceList) bool {
	for name := range old {
		if _, kept := list[name]; !kept {
			return true
		}
	}
	return false
}
