// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/borough-io/borough/pkg/corepod"
)

// ValidatePodStatusUpdate checks what an update of the status of a Pod changes.
// Much is not checked, because the kubelet writes it, but what it costs to add up the
// resources in it is.
func ValidatePodStatusUpdate(newPod, oldPod *corev1.Pod) field.ErrorList {
	metaPath, path := field.NewPath("metadata"), field.NewPath("status")
	errs := ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, metaPath)
	errs = append(errs, validatePodAnnotationUpdates(newPod, oldPod, metaPath.Child("annotations"))...)
	errs = append(errs, validatePodAnnotations(newPod, oldPod, metaPath.Child("annotations"))...)

	status, old := &newPod.Status, &oldPod.Status
	errs = append(errs, validatePodConditions(status.Conditions, path.Child("conditions"))...)
	if newPod.Spec.NodeName != oldPod.Spec.NodeName {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "may not be changed directly"))
	}
	if name, path := status.NominatedNodeName, path.Child("nominatedNodeName"); name != "" && name != old.NominatedNodeName {
		errs = append(errs, dnsSubdomain(path, name)...)
		if oldPod.Spec.NodeName != "" {
			errs = append(errs, field.Forbidden(path, "may not be set on pods that are already bound to a node"))
		}
	}
	errs = append(errs, validateObservedGeneration(status.ObservedGeneration, path.Child("observedGeneration"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(status.QOSClass, old.QOSClass, path.Child("qosClass"))...)

	lists := [...]struct {
		path       *field.Path
		is, was    []corev1.ContainerStatus
		containers []corev1.Container
		ephemeral  bool // never restarted, and without resources
	}{
		{path.Child("containerStatuses"), status.ContainerStatuses, old.ContainerStatuses, oldPod.Spec.Containers, false},
		{path.Child("initContainerStatuses"), status.InitContainerStatuses, old.InitContainerStatuses, oldPod.Spec.InitContainers, false},
		{path.Child("ephemeralContainerStatuses"), status.EphemeralContainerStatuses, old.EphemeralContainerStatuses, nil, true},
	}
	for _, l := range lists {
		if l.ephemeral || !canRestartAll(&oldPod.Spec) {
			errs = append(errs, validateRestarts(l.is, l.was, l.containers, oldPod.Spec.RestartPolicy, l.path)...)
		}
	}
	errs = append(errs, validateResourceClaimStatuses(newPod, path.Child("resourceClaimStatuses"))...)
	errs = append(errs, validateExtendedResourceClaimStatus(newPod, path.Child("extendedResourceClaimStatus"))...)
	errs = append(errs, validatePodIPs(status, old.PodIPs, path.Child("podIPs"))...)
	errs = append(errs, validateHostIPs(status, old.HostIPs, path.Child("hostIPs"))...)
	for _, l := range lists {
		errs = append(errs, validateContainerUsers(l.is, newPod.Spec.OS, l.path)...)
	}
	for _, l := range lists {
		if l.ephemeral {
			errs = append(errs, forbidResourceHealth(l.is, l.path)...)
		} else {
			errs = append(errs, validateResourceHealth(l.is, l.containers, status.ExtendedResourceClaimStatus, l.path)...)
		}
	}
	return append(errs, validateSums(corepod.StatusSums(newPod), corepod.StatusSums(oldPod), corepod.MaxStatusSums(&newPod.Spec), path.Child("initContainerStatuses"))...)
}

func validatePodConditions(conditions []corev1.PodCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, condition := range conditions {
		path := path.Index(i)
		errs = append(errs, validateObservedGeneration(condition.ObservedGeneration, path.Child("observedGeneration"))...)
		switch condition.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized:
		default: // the path is spelled as in kube-apiserver
			errs = append(errs, qualifiedName(path.Child("Type"), string(condition.Type))...)
		}
	}
	return errs
}

func validateObservedGeneration(generation int64, path *field.Path) field.ErrorList {
	if generation >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, generation, "must be a non-negative integer")}
}

// canRestartAll reports whether a rule of some container can restart the whole Pod.
func canRestartAll(spec *corev1.PodSpec) bool {
	for _, c := range corepod.ContainersWithResources(spec) {
		for _, rule := range c.RestartPolicyRules {
			if rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}

// validateRestarts checks that a container that has ended and is not to be
// restarted stays so.
func validateRestarts(is, was []corev1.ContainerStatus, containers []corev1.Container, policy corev1.RestartPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	running := sets.New[string]()
	for i := range is {
		if is[i].State.Terminated == nil {
			running.Insert(is[i].Name)
		}
	}
	byName := containersByName(containers)
	for i := range was {
		old := &was[i]
		if old.State.Terminated == nil || !running.Has(old.Name) {
			continue
		}
		if c := byName[old.Name]; c == nil || !restarts(c, policy, old.State.Terminated.ExitCode) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return errs
}

func containersByName(containers []corev1.Container) map[string]*corev1.Container {
	byName := make(map[string]*corev1.Container, len(containers))
	for i := range containers {
		byName[containers[i].Name] = &containers[i]
	}
	return byName
}

// restarts reports whether the container starts again after it has ended: by the
// first of its rules that the exit code matches, by its own policy, or by that
// of its Pod.
func restarts(c *corev1.Container, policy corev1.RestartPolicy, exitCode int32) bool {
	if c.RestartPolicy != nil {
		for _, rule := range c.RestartPolicyRules {
			if ruleMatches(&rule, exitCode) && rule.Action == corev1.ContainerRestartRuleActionRestart {
				return true
			}
		}
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

func ruleMatches(rule *corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}

// validatePodIPs also checks that the first address is that of podIP. Defaulting has made
// them equal, except where the first is empty.
func validatePodIPs(status *corev1.PodStatus, old []corev1.PodIP, path *field.Path) field.ErrorList {
	address := func(ip corev1.PodIP) string { return ip.IP }
	errs := validateIPs(status.PodIPs, old, address, path)
	switch {
	case (status.PodIP != "") != (len(status.PodIPs) > 0):
		errs = append(errs, field.Invalid(path, status.PodIPs, "podIP and podIPs must either both be set or both be unset"))
	case len(status.PodIPs) > 0 && status.PodIP != status.PodIPs[0].IP:
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), status.PodIPs[0].IP, "must be equal to `podIP`"))
	}
	return errs
}

func validateHostIPs(status *corev1.PodStatus, old []corev1.HostIP, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(status.HostIPs) > 0 && status.HostIP != status.HostIPs[0].IP {
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), status.HostIPs[0].IP, "must be equal to `hostIP`"))
	}
	address := func(ip corev1.HostIP) string { return ip.IP }
	return append(errs, validateIPs(status.HostIPs, old, address, path)...)
}

// validateIPs checks for at most one address of each IP family. What was there
// before may stay.
func validateIPs[T any](ips, old []T, address func(T) string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	addresses, oldAddresses := collect(ips, address), collect(old, address)
	for i, ip := range addresses {
		errs = append(errs, validateIP(ip, oldAddresses, path.Index(i))...)
	}
	if len(addresses) < 2 {
		return errs
	}
	dualStack, err := netutils.IsDualStackIPStrings(addresses)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("failed to check for dual stack with error:%v", err)))
	}
	if !dualStack || len(addresses) > 2 {
		errs = append(errs, field.Invalid(path, ips, "may specify no more than one IP for each IP family"))
	}
	return errs
}

func collect[T any](list []T, value func(T) string) []string {
	values := make([]string, len(list))
	for i := range list {
		values[i] = value(list[i])
	}
	return values
}

// validateContainerUsers checks as whom the containers run.
func validateContainerUsers(statuses []corev1.ContainerStatus, os *corev1.PodOS, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range statuses {
		if statuses[i].User == nil || statuses[i].User.Linux == nil {
			continue
		}
		user, path := statuses[i].User.Linux, path.Index(i).Child("user", "linux")
		switch {
		case os == nil || os.Name == corev1.Linux:
			// The container runtime reports any uid_t.
			if user.UID < 0 || user.UID > math.MaxUint32 {
				errs = append(errs, field.Invalid(path.Child("uid"), user.UID, fmt.Sprintf("must be between 0 and %d, inclusive", int64(math.MaxUint32))))
			}
			errs = append(errs, validateGroupID(&user.GID, path.Child("gid"))...)
			for j := range user.SupplementalGroups {
				errs = append(errs, validateGroupID(&user.SupplementalGroups[j], path.Child("supplementalGroups").Index(j))...)
			}
		case os.Name == corev1.Windows:
			errs = append(errs, field.Forbidden(path, "cannot be set for a windows pod"))
		}
	}
	return errs
}
