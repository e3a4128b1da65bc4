// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
)

// ValidatePodCreate checks a Pod that is to be created.
func ValidatePodCreate(pod *corev1.Pod) field.ErrorList {
	errs := validatePod(pod, nil)

	path := field.NewPath("spec")
	errs = append(errs, validateSums(corepod.InitSums(&pod.Spec), 0, corepod.MaxInitSums, path.Child("initContainers"))...)
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	errs = append(errs, validateSeccompAnnotationsMatch(pod, path)...)
	errs = append(errs, validateAppArmorAnnotationsMatch(pod, path)...)
	return errs
}

// validateSums checks what it costs to add up the resources of sidecars. An update of a Pod
// that was stored with more than is permitted may keep what it has.
func validateSums(sums, oldSums, max int, path *field.Path) field.ErrorList {
	if sums <= max || sums <= oldSums {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"must have at most %d resources of sidecars, each counted once for every init container after it", max))}
}

// ValidatePodBinding checks what a Pod is to be bound to.
func ValidatePodBinding(binding *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("target")
	if kind := binding.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(path.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if binding.Target.Name == "" {
		return append(errs, field.Required(path.Child("name"), ""))
	}
	if len(errs) == 0 {
		errs = dnsSubdomain(path.Child("name"), binding.Target.Name)
	}
	return errs
}

// validatePod checks what holds for a Pod at any time. The old Pod is nil if there
// was none.
func validatePod(pod, old *corev1.Pod) field.ErrorList {
	metaPath, path := field.NewPath("metadata"), field.NewPath("spec")
	errs := ValidateObjectMeta(&pod.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metaPath)
	errs = append(errs, validatePodAnnotations(pod, old, metaPath.Child("annotations"))...)
	var oldSpec *corev1.PodSpec
	if old != nil {
		oldSpec = &old.Spec
	}
	errs = append(errs, validatePodSpec(&pod.Spec, oldSpec, &pod.ObjectMeta, path)...)
	errs = append(errs, validateServiceAccountTokens(&pod.Spec, path.Child("volumes"))...)
	errs = append(errs, validateImagesNotPadded(pod.Spec.Containers, path.Child("containers"))...)
	errs = append(errs, validateImagesNotPadded(pod.Spec.InitContainers, path.Child("initContainers"))...)
	return errs
}

// podScope is what the rules for a part of a Pod need to know of the whole.
type podScope struct {
	spec *corev1.PodSpec
	meta *metav1.ObjectMeta
	// volumes holds the sources of the volumes without errors, by name.
	volumes map[string]*corev1.VolumeSource
	// claims holds the names of the resource claims of the Pod.
	claims claimNames
	// hadSysAdmin is hasSysAdmin of the old Pod.
	hadSysAdmin bool
}

// validatePodSpec checks the spec of a Pod. The old spec is nil if there was no Pod.
func validatePodSpec(spec, old *corev1.PodSpec, meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.TerminationGracePeriodSeconds == nil {
		errs = append(errs, field.Required(path.Child("terminationGracePeriodSeconds"), ""))
	}

	scope := &podScope{spec: spec, hadSysAdmin: hasSysAdmin(old), meta: meta, claims: newClaimNames(spec.ResourceClaims)}
	errs = append(errs, scope.validateVolumes(path.Child("volumes"))...)
	errs = append(errs, scope.validateResourceClaims(path.Child("resourceClaims"))...)
	errs = append(errs, scope.validateContainers(path.Child("containers"))...)
	errs = append(errs, scope.validateInitContainers(path.Child("initContainers"))...)
	errs = append(errs, scope.validateEphemeralContainers(path.Child("ephemeralContainers"))...)
	errs = append(errs, scope.validatePodResources(path)...)
	errs = append(errs, validateHostNetworkPorts(spec, path.Child("containers"))...)
	errs = append(errs, requiredAndSupported(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, requiredAndSupported(path.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validatePodSecurityContext(spec, path.Child("securityContext"))...)
	errs = append(errs, validateSharedProcesses(spec, path.Child("shareProcessNamespace"))...)
	errs = append(errs, validateAffinity(spec.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateDNSConfig(spec, path.Child("dnsConfig"))...)
	errs = append(errs, validateReadinessGates(spec.ReadinessGates, path.Child("readinessGates"))...)
	errs = append(errs, validateSchedulingGates(spec.SchedulingGates, path.Child("schedulingGates"))...)
	errs = append(errs, validateTopologySpreadConstraints(spec.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	errs = append(errs, validateHostProcess(spec, path)...)
	errs = append(errs, validateUserNamespace(spec, path)...)
	errs = append(errs, validateHostnameOverride(spec, path.Child("hostnameOverride"))...)
	errs = append(errs, validateOptionalName(path.Child("serviceAccountName"), spec.ServiceAccountName)...)
	errs = append(errs, validateOptionalName(path.Child("nodeName"), spec.NodeName)...)
	if deadline := spec.ActiveDeadlineSeconds; deadline != nil && (*deadline < 1 || *deadline > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *deadline, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	if spec.Hostname != "" {
		errs = append(errs, dnsLabel(path.Child("hostname"), spec.Hostname)...)
	}
	if spec.Subdomain != "" {
		errs = append(errs, dnsLabel(path.Child("subdomain"), spec.Subdomain)...)
	}
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateHostAliases(spec.HostAliases, path.Child("hostAliases"))...)
	errs = append(errs, validateOptionalName(path.Child("priorityClassName"), spec.PriorityClassName)...)
	if spec.RuntimeClassName != nil {
		errs = append(errs, dnsSubdomain(path.Child("runtimeClassName"), *spec.RuntimeClassName)...)
	}
	if spec.PreemptionPolicy != nil {
		errs = append(errs, requiredAndSupported(path.Child("preemptionPolicy"), *spec.PreemptionPolicy,
			corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	errs = append(errs, validateOverhead(spec.Overhead, path.Child("overhead"))...)
	errs = append(errs, validateOS(spec, path)...)
	errs = append(errs, validateSchedulingGroup(spec.SchedulingGroup, path.Child("schedulingGroup"))...)
	errs = append(errs, validateEnvFileVolumes(spec, path)...)
	return errs
}

// validateOptionalName checks the name of another object, which need not exist.
func validateOptionalName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	return dnsSubdomain(path, name)
}
