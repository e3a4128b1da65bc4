// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package defaults sets the defaults of Pods. Its functions have the names that
// defaulter-gen looks for, so that any kind with a PodSpec or a PodStatus gets them.
package defaults

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/corepod"
)

// SetDefaults_Pod sets what depends on more than one part of the Pod. It runs
// before the defaults of the parts, so it sees resources as they were sent.
func SetDefaults_Pod(obj *corev1.Pod) {
	spec := &obj.Spec
	for _, c := range corepod.ContainersWithResources(spec) {
		FillMissing(&c.Resources.Requests, c.Resources.Limits)
	}
	// These build on the requests of the containers.
	if spec.Resources != nil {
		setPodHugePageLimits(spec)
		setPodRequests(spec)
	}
	if spec.HostNetwork {
		setHostPorts(spec)
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr.To(corev1.DefaultEnableServiceLinks)
	}
	if period := spec.TerminationGracePeriodSeconds; period != nil && *period < 0 {
		spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	}
}

// SetDefaults_PodSpec sets the policies that a Pod does not name. A deprecated
// serviceAccount stands in for serviceAccountName and then follows it.
func SetDefaults_PodSpec(obj *corev1.PodSpec) {
	if obj.RestartPolicy == "" {
		obj.RestartPolicy = corev1.RestartPolicyAlways
	}
	if obj.DNSPolicy == "" {
		obj.DNSPolicy = corev1.DNSClusterFirst
	}
	if obj.SchedulerName == "" {
		obj.SchedulerName = corev1.DefaultSchedulerName
	}
	if obj.SecurityContext == nil {
		obj.SecurityContext = &corev1.PodSecurityContext{}
	}
	if obj.TerminationGracePeriodSeconds == nil {
		obj.TerminationGracePeriodSeconds = ptr.To[int64](corev1.DefaultTerminationGracePeriodSeconds)
	}
	if obj.ServiceAccountName == "" {
		obj.ServiceAccountName = obj.DeprecatedServiceAccount
	}
	obj.DeprecatedServiceAccount = obj.ServiceAccountName
}

// SetDefaults_PodStatus keeps podIP equal to the first of podIPs. Where they
// differ podIP wins: a writer that does not know podIPs sends the old list back.
func SetDefaults_PodStatus(obj *corev1.PodStatus) {
	switch {
	case obj.PodIP == "" && len(obj.PodIPs) > 0:
		obj.PodIP = obj.PodIPs[0].IP
	case obj.PodIP != "" && (len(obj.PodIPs) == 0 || obj.PodIPs[0].IP != obj.PodIP):
		obj.PodIPs = []corev1.PodIP{{IP: obj.PodIP}}
	}
}

// setPodHugePageLimits limits the Pod to the huge pages that its containers are
// limited to, unless the Pod itself says how many it requests.
func setPodHugePageLimits(spec *corev1.PodSpec) {
	resources := spec.Resources
	if len(resources.Limits) == 0 && len(resources.Requests) == 0 {
		return
	}
	limits := resourcehelper.AggregateContainerLimits(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, requested := resources.Requests[name]
		return requested || !isHugePages(name)
	})
	corepod.KeepExact(limits)
	FillMissing(&resources.Limits, limits)
}

// setPodRequests completes the requests of a Pod with pod-level limits: with the
// sum of the requests of its containers, or else with its limits. Huge pages cannot
// be overcommitted, so for them only the limit counts.
func setPodRequests(spec *corev1.PodSpec) {
	resources := spec.Resources
	if len(resources.Limits) == 0 {
		return
	}
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

// setHostPorts sets the host ports of containers in the network of the node to
// their container ports.
func setHostPorts(spec *corev1.PodSpec) {
	for _, c := range corepod.ContainersWithResources(spec) {
		for i := range c.Ports {
			if port := &c.Ports[i]; port.HostPort == 0 {
				port.HostPort = port.ContainerPort
			}
		}
	}
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
