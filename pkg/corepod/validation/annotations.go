// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
)

const appArmorAnnotationPrefix = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix

// validatePodAnnotations checks the annotations that mean something in a Pod. A
// cost of deletion that has been wrong before, as a Binding can set it, is accepted.
func validatePodAnnotations(pod, old *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	annotations := pod.Annotations
	if value, mirror := annotations[corev1.MirrorPodAnnotationKey]; mirror && pod.Spec.NodeName == "" {
		errs = append(errs, field.Invalid(path.Key(corev1.MirrorPodAnnotationKey), value, "must set spec.nodeName if mirror pod annotation is set"))
	}
	if value := annotations[corev1.TolerationsAnnotationKey]; value != "" {
		var tolerations []corev1.Toleration
		if err := json.Unmarshal([]byte(value), &tolerations); err != nil {
			errs = append(errs, field.Invalid(path, corev1.TolerationsAnnotationKey, err.Error()))
		} else {
			errs = append(errs, validateTolerations(tolerations, path.Child(corev1.TolerationsAnnotationKey))...)
		}
	}
	if value := annotations[corev1.PodDeletionCost]; !validDeletionCost(pod) && (old == nil || validDeletionCost(old)) {
		errs = append(errs, field.Invalid(path.Key(corev1.PodDeletionCost), value, "must be a 32bit integer"))
	}
	errs = append(errs, validateSeccompAnnotations(annotations, path)...)
	return append(errs, validateAppArmorAnnotations(pod, path)...)
}

// validDeletionCost reports whether the cost of deletion, if there is one, is a 32-bit
// integer without a plus sign or leading zeros.
func validDeletionCost(pod *corev1.Pod) bool {
	value, set := pod.Annotations[corev1.PodDeletionCost]
	_, err := strconv.ParseInt(value, 10, 32)
	return !set || err == nil && deletionCostStart.MatchString(value)
}

var deletionCostStart = regexp.MustCompile(`^(-|[1-9]|0$)`)

// validatePodAnnotationUpdates forbids changes of annotations that stand for
// fields, or for what only the kubelet knows.
func validatePodAnnotationUpdates(newPod, oldPod *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(key, change string) {
		if strings.HasPrefix(key, appArmorAnnotationPrefix) {
			errs = append(errs, field.Forbidden(path.Key(key), fmt.Sprintf("may not %s AppArmor annotations", change)))
		}
		if key == corev1.MirrorPodAnnotationKey {
			errs = append(errs, field.Forbidden(path.Key(key), fmt.Sprintf("may not %s mirror pod annotation", change)))
		}
	}
	for _, key := range sortedKeys(oldPod.Annotations) {
		if value, kept := newPod.Annotations[key]; !kept || value != oldPod.Annotations[key] {
			forbid(key, "remove or update")
		}
	}
	for _, key := range sortedKeys(newPod.Annotations) {
		if _, known := oldPod.Annotations[key]; !known {
			forbid(key, "add")
		}
	}
	return errs
}

func validateSeccompAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(annotations) {
		if key != corev1.SeccompPodAnnotationKey && !strings.HasPrefix(key, corev1.SeccompContainerAnnotationKeyPrefix) {
			continue
		}
		path, profile := path.Child(key), annotations[key]
		if local, ok := strings.CutPrefix(profile, corev1.SeccompLocalhostProfileNamePrefix); ok {
			errs = append(errs, validateDescendingPath(local, path)...)
			continue
		}
		switch profile {
		case corev1.SeccompProfileRuntimeDefault, corev1.DeprecatedSeccompProfileDockerDefault, corev1.SeccompProfileNameUnconfined:
		default:
			errs = append(errs, field.Invalid(path, profile, "must be a valid seccomp profile"))
		}
	}
	return errs
}

func validateAppArmorAnnotations(pod *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for _, c := range corepod.Containers(&pod.Spec, nil) {
		names.Insert(c.Name)
	}
	for _, key := range sortedKeys(pod.Annotations) {
		name, ok := strings.CutPrefix(key, appArmorAnnotationPrefix)
		if !ok {
			continue
		}
		if !names.Has(name) {
			errs = append(errs, field.Invalid(path.Key(key), name, "container not found"))
		}
		switch profile := pod.Annotations[key]; {
		case profile == "",
			profile == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault,
			profile == corev1.DeprecatedAppArmorBetaProfileNameUnconfined,
			strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix):
		default:
			errs = append(errs, field.Invalid(path.Key(key), profile, fmt.Sprintf("invalid AppArmor profile name: %q", profile)))
		}
	}
	return errs
}

// validateSeccompAnnotationsMatch checks that where both a field and the
// annotation that came before it are set, they say the same.
func validateSeccompAnnotationsMatch(pod *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	match := func(key string, profile *corev1.SeccompProfile, path *field.Path) {
		annotation, set := pod.Annotations[key]
		if !set || profile == nil {
			return
		}
		if detail, ok := profileMatches(annotation, string(profile.Type), profile.LocalhostProfile,
			corev1.SeccompProfileRuntimeDefault, corev1.DeprecatedSeccompProfileDockerDefault); !ok {
			path = path.Child("securityContext", "seccompProfile", detail)
			errs = append(errs, mismatch("seccomp", detail, path))
		}
	}
	if pod.Spec.SecurityContext != nil {
		match(corev1.SeccompPodAnnotationKey, pod.Spec.SecurityContext.SeccompProfile, path)
	}
	for path, c := range corepod.Containers(&pod.Spec, path) {
		if c.SecurityContext != nil {
			match(corev1.SeccompContainerAnnotationKeyPrefix+c.Name, c.SecurityContext.SeccompProfile, path)
		}
	}
	return errs
}

// validateAppArmorAnnotationsMatch is the same for AppArmor, where the field of
// the Pod counts for containers without one.
func validateAppArmorAnnotationsMatch(pod *corev1.Pod, path *field.Path) field.ErrorList {
	if isWindows(&pod.Spec) {
		return nil
	}
	var errs field.ErrorList
	var podProfile *corev1.AppArmorProfile
	if pod.Spec.SecurityContext != nil {
		podProfile = pod.Spec.SecurityContext.AppArmorProfile
	}
	for path, c := range corepod.Containers(&pod.Spec, path) {
		profile := podProfile
		if c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
			profile = c.SecurityContext.AppArmorProfile
		}
		annotation, set := pod.Annotations[appArmorAnnotationPrefix+c.Name]
		if !set || profile == nil {
			continue
		}
		if detail, ok := profileMatches(annotation, string(profile.Type), profile.LocalhostProfile,
			corev1.DeprecatedAppArmorBetaProfileRuntimeDefault); !ok {
			path = path.Child("securityContext", "appArmorProfile", detail)
			errs = append(errs, mismatch("apparmor", detail, path))
		}
	}
	return errs
}

func mismatch(what, detail string, path *field.Path) *field.Error {
	if detail == "localhostProfile" {
		detail = "profile"
	}
	return field.Forbidden(path, fmt.Sprintf("%s %s in annotation and field must match", what, detail))
}

// profileMatches compares the annotation with a profile field, whose types and
// local names seccomp and AppArmor have in common. Where they differ it names
// the part of the field that does.
func profileMatches(annotation, profileType string, localhost *string, defaults ...string) (part string, ok bool) {
	switch profileType {
	case string(corev1.SeccompProfileTypeUnconfined):
		return "type", annotation == corev1.SeccompProfileNameUnconfined
	case string(corev1.SeccompProfileTypeRuntimeDefault):
		return "type", slices.Contains(defaults, annotation)
	case string(corev1.SeccompProfileTypeLocalhost):
		local, ok := strings.CutPrefix(annotation, corev1.SeccompLocalhostProfileNamePrefix)
		if !ok {
			return "type", false
		}
		return "localhostProfile", localhost != nil && *localhost == local
	}
	return "", true
}
