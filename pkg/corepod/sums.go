// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package corepod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// MaxInitSums is how many different resources of sidecars a Pod may have, each counted
	// once for every init container after the sidecar, other sidecars included.
	MaxInitSums = 10_000
	// MaxStatusSums is the same for what a node reports of sidecars: the requests that it has
	// allocated, and the requests and limits that are in effect, so it is reached only by a
	// node that reports more than the Pod specifies.
	MaxStatusSums = 2 * MaxInitSums
)

// CanBeSummed reports whether the resources of the containers can be added up at a cost that
// is in proportion to the Pod: for each init container, the library copies those of all
// sidecars before it, or compares with them.
func CanBeSummed(spec *corev1.PodSpec) bool {
	return countSums(spec, func(c *corev1.Container) []corev1.ResourceList {
		return []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits}
	}) <= MaxInitSums
}

// StatusCanBeSummed reports the same of what the node of a Pod reports of its containers.
func StatusCanBeSummed(pod *corev1.Pod) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
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
	}) <= MaxStatusSums
}

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
