// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/borough-io/borough/pkg/corepod"
)

// usage is the request and limit of a container or a Pod for one resource.
type usage struct {
	request, limit specified
}

// specified is a quantity that may be missing.
type specified struct {
	quantity resource.Quantity
	found    bool
}

// read sets s to the quantity of a resource in the list. It is not a function that
// returns a quantity, to avoid a copy.
func (s *specified) read(list corev1.ResourceList, name corev1.ResourceName) {
	s.quantity, s.found = list[name]
}

func (s *specified) amount() amount {
	if !s.found {
		return amount{}
	}
	return amountOf(&s.quantity)
}

// copy returns a copy that shares no memory with s: adding to a large quantity
// changes it in place.
func (s *specified) copy() specified {
	return specified{s.quantity.DeepCopy(), s.found}
}

func (s *specified) add(other *specified) {
	switch {
	case !other.found:
	case !s.found:
		*s = other.copy()
	default:
		s.quantity.Add(other.quantity)
	}
}

func (s *specified) raiseTo(other *specified) {
	if other.found && (!s.found || other.quantity.Cmp(s.quantity) > 0) {
		*s = other.copy()
	}
}

// read sets u to the request and limit of a resource.
func (u *usage) read(resources *corev1.ResourceRequirements, name corev1.ResourceName) {
	u.request.read(resources.Requests, name)
	u.limit.read(resources.Limits, name)
}

// podUsage returns the usage of a Pod as a whole: the sum over its containers and
// sidecars, or the largest step of its initialization if that is more. The Pod-level
// resources, for cpu and memory, replace that. Overhead does not count.
func podUsage(spec *corev1.PodSpec, name corev1.ResourceName) usage {
	var total, own usage
	for i := range spec.Containers {
		own.read(&spec.Containers[i].Resources, name)
		total.add(&own)
	}
	var sidecars, largestStep usage
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		own.read(&c.Resources, name)
		if corepod.IsSidecar(c) {
			total.add(&own)
			sidecars.add(&own)
			continue
		}
		// An init container runs together with the sidecars before it.
		step := own.copy()
		step.add(&sidecars)
		largestStep.raiseTo(&step)
	}
	total.raiseTo(&largestStep)

	if spec.Resources != nil && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
		own.read(spec.Resources, name)
		if own.request.found {
			total.request = own.request
		}
		if own.limit.found {
			total.limit = own.limit
		}
	}
	return total
}

func containerCount(spec *corev1.PodSpec) int { return len(spec.Containers) + len(spec.InitContainers) }

func (u *usage) copy() usage {
	return usage{request: u.request.copy(), limit: u.limit.copy()}
}

func (u *usage) add(other *usage) {
	u.request.add(&other.request)
	u.limit.add(&other.limit)
}

func (u *usage) raiseTo(other *usage) {
	u.request.raiseTo(&other.request)
	u.limit.raiseTo(&other.limit)
}
