// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prepare changes Pods before they are validated, and settles what the
// deletion of one waits for: which fields a request can't set, and which are
// derived from others.
package prepare

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/borough-io/borough/pkg/corepod"
	"github.com/borough-io/borough/pkg/corepod/defaults"
	"github.com/borough-io/borough/pkg/corepod/features"
	"github.com/borough-io/borough/pkg/corepod/qos"
)

// ForCreate sets the initial status of a new Pod and ignores the one in the request.
// It runs after mutating admission, so the QoS class includes the defaults of
// LimitRanges.
func ForCreate(ctx context.Context, pod *corev1.Pod) {
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	if len(pod.Spec.SchedulingGates) > 0 {
		corepod.SetCondition(&pod.Status, corev1.PodCondition{
			Type:    corev1.PodScheduled,
			Status:  corev1.ConditionFalse,
			Reason:  corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		})
	}
	dropUnused(pod, nil)
	resolveLabelKeys(pod)
	syncAppArmor(ctx, pod)
	defaults.PodResources(&pod.Spec)
	pod.Status.QOSClass = qos.ComputePodQOS(pod)
}

// dropUnused drops what would have no effect. The old Pod is nil if there was none.
func dropUnused(pod, old *corev1.Pod) {
	features.DropDisabled(pod, old)
	DropInitContainerAnnotations(pod)
}

// DropInitContainerAnnotations drops the annotations that init containers were before
// they were fields.
func DropInitContainerAnnotations(pod *corev1.Pod) {
	for _, version := range []string{"alpha", "beta"} {
		delete(pod.Annotations, "pod."+version+".kubernetes.io/init-containers")
		delete(pod.Annotations, "pod."+version+".kubernetes.io/init-container-statuses")
	}
}

// resolveLabelKeys writes the values that the Pod's labels have for
// matchLabelKeys and mismatchLabelKeys into the selectors of the same term, so that
// a scheduler has to read only the selectors.
func resolveLabelKeys(pod *corev1.Pod) {
	add := func(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		// A missing selector matches nothing, and stays missing.
		if selector == nil {
			return
		}
		for _, key := range keys {
			// A value that is too long, which validation refuses, would be in each of them.
			if value, ok := pod.Labels[key]; ok && len(value) <= content.LabelValueMaxLength {
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: key, Operator: operator, Values: []string{value},
				})
			}
		}
	}
	for term := range corepod.AffinityTerms(pod.Spec.Affinity) {
		add(term.LabelSelector, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(term.LabelSelector, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		add(constraint.LabelSelector, constraint.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}

// syncAppArmor copies profiles from the annotations that had them once to the
// containers that have none, and warns of those annotations.
func syncAppArmor(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return
	}
	var podProfile *corev1.AppArmorProfile
	if pod.Spec.SecurityContext != nil {
		podProfile = pod.Spec.SecurityContext.AppArmorProfile
	}
	for _, container := range corepod.Containers(&pod.Spec, nil) {
		key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + container.Name
		annotation, found := pod.Annotations[key]
		if !found || container.SecurityContext != nil && container.SecurityContext.AppArmorProfile != nil {
			continue
		}
		profile := appArmorProfile(annotation)
		if profile != nil {
			if apiequality.Semantic.DeepEqual(profile, podProfile) {
				continue
			}
			if container.SecurityContext == nil {
				container.SecurityContext = &corev1.SecurityContext{}
			}
			container.SecurityContext.AppArmorProfile = profile
		}
		// Said here, because the annotation and the field agree from now on.
		warning.AddWarning(ctx, "", fmt.Sprintf(`%s: deprecated since v1.30; use the "appArmorProfile" field instead`,
			field.NewPath("metadata", "annotations").Key(key)))
	}
}

// maxLocalhostProfile is the longest name of a profile that a path can have.
const maxLocalhostProfile = 4095

// appArmorProfile returns the profile that an annotation names, or nil.
func appArmorProfile(annotation string) *corev1.AppArmorProfile {
	switch annotation {
	case corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	}
	name, local := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	if !local || name == "" || name != strings.TrimSpace(name) || len(name) > maxLocalhostProfile {
		return nil
	}
	return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
}
