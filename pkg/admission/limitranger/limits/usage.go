// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// usage is what a container or a Pod specifies about one resource.
type usage struct {
	request, limit specified
}

// specified is a quantity, or that none is specified.
type specified struct {
	quantity resource.Quantity
	found    bool
}

// read is what the list specifies about a resource. A quantity is large: it is read
// to where it is needed.
func (s *specified) read(list corev1.ResourceList, name corev1.ResourceName) {
	s.quantity, s.found = list[name]
}

func (s *specified) amount() amount {
	if !s.found {
		return amount{fits: true}
	}
	return amountOf(s.quantity)
}

// copy shares no memory with s: adding to a large quantity changes it in place.
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

// read is what one container specifies about the resource.
func (u *usage) read(resources *corev1.ResourceRequirements, name corev1.ResourceName) {
	u.request.read(resources.Requests, name)
	u.limit.read(resources.Limits, name)
}

// podUsage is what a Pod as a whole specifies about the resource: the sum over
// its containers and sidecars, or the largest step of its initialization if
// that is more. What the Pod says itself about cpu and memory replaces that.
// Overhead does not count.
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
		if isSidecar(c) {
			total.add(&own)
			sidecars.add(&own)
			continue
		}
		// An init container runs beside the sidecars that come before it.
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

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

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
