// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package corepod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// MaxInitSums is the limit for InitSums.
const MaxInitSums = 10_000

// InitSums returns how many different resources of sidecars a Pod has, each counted once for
// every init container after the sidecar, other sidecars included: for each init container,
// the library copies those of all sidecars before it, or compares with them.
func InitSums(spec *corev1.PodSpec) int {
	return countSums(spec, func(c *corev1.Container) []corev1.ResourceList {
		return []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits}
	})
}

// CanBeSummed reports whether the resources of the containers can be added up at a cost that
// is in proportion to the Pod.
func CanBeSummed(spec *corev1.PodSpec) bool { return InitSums(spec) <= MaxInitSums }

// StatusSums returns the same number as InitSums for what the node of a Pod reports of its
// sidecars.
func StatusSums(pod *corev1.Pod) int {
	if len(pod.Spec.InitContainers) == 0 {
		return 0
	}
	statuses := map[string]*corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if _, found := statuses[list[i].Name]; !found { // the library takes the first
				statuses[list[i].Name] = &list[i]
			}
		}
	}
	return countSums(&pod.Spec, func(c *corev1.Container) []corev1.ResourceList {
		status := statuses[c.Name]
		switch {
		case status == nil:
			return nil
		case status.Resources == nil:
			return []corev1.ResourceList{status.AllocatedResources}
		}
		return []corev1.ResourceList{status.AllocatedResources, status.Resources.Requests, status.Resources.Limits}
	})
}

// MaxStatusSums returns the limit for StatusSums. A node reports the requests that it has
// allocated, and the requests and limits that are in effect: at most twice what the Pod
// specifies.
func MaxStatusSums(spec *corev1.PodSpec) int { return 2 * max(MaxInitSums, InitSums(spec)) }

// countSums returns the number of different resources in the lists of the sidecars, each
// counted once for every init container after the sidecar. A name in two lists is of two
// resources.
func countSums(spec *corev1.PodSpec, lists func(sidecar *corev1.Container) []corev1.ResourceList) (sums int) {
	type resource struct {
		list int
		name corev1.ResourceName
	}
	resources := sets.Set[resource]{}
	for i := range spec.InitContainers {
		sums += len(resources)
		container := &spec.InitContainers[i]
		if !IsSidecar(container) {
			continue
		}
		for list, quantities := range lists(container) {
			for name := range quantities {
				resources.Insert(resource{list, name})
			}
		}
	}
	return sums
}
