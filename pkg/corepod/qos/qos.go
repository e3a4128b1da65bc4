// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package qos computes the quality-of-service class of a Pod.
package qos

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/borough-io/borough/pkg/corepod"
)

// computeResources are the resources that decide the class; all others are
// ignored.
var computeResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// ComputePodQOS returns the class that the resources of the Pod give it, as
// kube-apiserver computes it:
//
//   - BestEffort: no cpu or memory is requested or limited anywhere;
//   - Guaranteed: cpu and memory are limited everywhere and the requests are
//     equal to the limits;
//   - Burstable: the rest.
//
// Resources of the Pod itself (spec.resources), when present, decide alone.
// Otherwise containers and init containers do; ephemeral containers have none.
func ComputePodQOS(pod *corev1.Pod) corev1.PodQOSClass {
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return classOf(pod.Spec.Resources)
	}
	var class corev1.PodQOSClass
	for _, c := range corepod.ContainersWithResources(&pod.Spec) {
		class = common(class, classOf(&c.Resources))
	}
	if class == "" {
		return corev1.PodQOSBestEffort
	}
	return class
}

// classOf returns the class of one set of resources.
func classOf(resources *corev1.ResourceRequirements) (class corev1.PodQOSClass) {
	for _, name := range computeResources {
		request, limit := resources.Requests[name], resources.Limits[name]
		switch {
		case request.Cmp(limit) != 0:
			return corev1.PodQOSBurstable
		case limit.IsZero():
			class = common(class, corev1.PodQOSBestEffort)
		default:
			class = common(class, corev1.PodQOSGuaranteed)
		}
	}
	return class
}

// common returns the class of two parts of a Pod: theirs, or Burstable if they differ.
func common(a, b corev1.PodQOSClass) corev1.PodQOSClass {
	if a == "" || a == b {
		return b
	}
	return corev1.PodQOSBurstable
}
