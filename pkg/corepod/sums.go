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
	sidecars := []*initSums{{}, {}}
	for i := range spec.InitContainers {
		container := &spec.InitContainers[i]
		add(sidecars, IsSidecar(container), container.Resources.Requests, container.Resources.Limits)
	}
	return total(sidecars) <= MaxInitSums
}

// StatusCanBeSummed reports the same of what the node of a Pod reports of its containers.
func StatusCanBeSummed(pod *corev1.Pod) bool {
	statuses := map[string]*corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if _, found := statuses[list[i].Name]; !found { // the library takes the first
				statuses[list[i].Name] = &list[i]
			}
		}
	}
	sidecars := []*initSums{{}, {}, {}}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		var allocated corev1.ResourceList
		var effective corev1.ResourceRequirements
		if status := statuses[container.Name]; status != nil {
			allocated = status.AllocatedResources
			if status.Resources != nil {
				effective = *status.Resources
			}
		}
		add(sidecars, IsSidecar(container), allocated, effective.Requests, effective.Limits)
	}
	return total(sidecars) <= MaxStatusSums
}

// initSums counts the resources of the sidecars so far for each init container.
type initSums struct {
	resources sets.Set[corev1.ResourceName]
	sum       int
}

// add adds the next init container, which has a list of resources for each of the sums.
func add(sums []*initSums, sidecar bool, lists ...corev1.ResourceList) {
	for i, s := range sums {
		s.sum += len(s.resources)
		if !sidecar || len(lists[i]) == 0 {
			continue
		}
		if s.resources == nil {
			s.resources = sets.Set[corev1.ResourceName]{}
		}
		for name := range lists[i] {
			s.resources.Insert(name)
		}
	}
}

func total(sums []*initSums) (total int) {
	for _, s := range sums {
		total += s.sum
	}
	return total
}
