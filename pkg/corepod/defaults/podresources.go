// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/borough-io/borough/pkg/corepod"
)

// PodResources completes the resources of the Pod itself, if it has any, with those of
// its containers. It is not a default that is set when a Pod is read, because mutating
// admission can still add containers.
func PodResources(spec *corev1.PodSpec) {
	if spec.Resources == nil || len(spec.Resources.Requests)+len(spec.Resources.Limits) == 0 || !corepod.CanBeSummed(spec) {
		return // validation refuses what cannot be summed
	}
	// Each builds on the one before it.
	setPodHugePageLimits(spec)
	setPodRequests(spec)
	setPodLimits(spec)
}

// setPodHugePageLimits limits the Pod to the huge pages that its containers are
// limited to, unless the Pod itself says how many it requests.
func setPodHugePageLimits(spec *corev1.PodSpec) {
	limits := containerLimits(spec)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, requested := spec.Resources.Requests[name]
		return requested || !isHugePages(name)
	})
	FillMissing(&spec.Resources.Limits, limits)
}

// setPodRequests completes the requests of the Pod with the sum of the requests of its
// containers, or else with its limits. Huge pages cannot be overcommitted, so for them
// only the limit counts.
func setPodRequests(spec *corev1.PodSpec) {
	resources := spec.Resources
	requested := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	maps.DeleteFunc(requested, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return !resourcehelper.IsSupportedPodLevelResource(name) || isHugePages(name)
	})
	corepod.KeepExact(requested)
	FillMissing(&resources.Requests, requested)

	limits := maps.Clone(resources.Limits)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return !resourcehelper.IsSupportedPodLevelResource(name)
	})
	FillMissing(&resources.Requests, limits)
}

// setPodLimits limits a resource that the Pod requests, if each container has a limit
// of it, to the sum of these limits, but at least to the request.
func setPodLimits(spec *corev1.PodSpec) {
	limits := containerLimits(spec)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, requested := spec.Resources.Requests[name]
		return !requested || !resourcehelper.IsSupportedPodLevelResource(name) || !limitedEverywhere(spec, name)
	})
	for name, limit := range limits {
		if request := spec.Resources.Requests[name]; request.Cmp(limit) > 0 {
			limits[name] = request
		}
	}
	FillMissing(&spec.Resources.Limits, limits)
}

// containerLimits returns the sum of the limits of the containers.
func containerLimits(spec *corev1.PodSpec) corev1.ResourceList {
	limits := resourcehelper.AggregateContainerLimits(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	corepod.KeepExact(limits)
	return limits
}

// limitedEverywhere reports whether each container has a limit of the resource. As in
// Kubernetes, an ephemeral container, which can't have limits, counts as one.
func limitedEverywhere(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, c := range corepod.Containers(spec, nil) {
		if _, limited := c.Resources.Limits[name]; !limited {
			return false
		}
	}
	return true
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
