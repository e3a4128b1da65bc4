// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package defaults sets the defaults of Pods. Its functions have the names that
// defaulter-gen looks for, so that any kind with a PodSpec or a PodStatus gets them.
package defaults

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/corepod"
)

// SetDefaults_Pod sets what depends on more than one part of the Pod. It runs
// before the defaults of the parts, so it sees resources as they were sent.
func SetDefaults_Pod(obj *corev1.Pod) {
	spec := &obj.Spec
	for _, c := range corepod.ContainersWithResources(spec) {
		FillMissing(&c.Resources.Requests, c.Resources.Limits)
	}
	if spec.HostNetwork {
		setHostPorts(spec)
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(corev1.DefaultEnableServiceLinks)
	}
	if period := spec.TerminationGracePeriodSeconds; period != nil && *period < 0 {
		spec.TerminationGracePeriodSeconds = new(int64(1))
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
		obj.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
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
