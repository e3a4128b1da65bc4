// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containers gives every container with its path, in the order in which they
// start.
func containers(spec *corev1.PodSpec) iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
		path := field.NewPath("spec")
		for i := range spec.InitContainers {
			if !yield(path.Child("initContainers").Index(i), &spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(path.Child("containers").Index(i), &spec.Containers[i]) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			common := &spec.EphemeralContainers[i].EphemeralContainerCommon
			if !yield(path.Child("ephemeralContainers").Index(i), (*corev1.Container)(common)) {
				return
			}
		}
	}
}

// affinityTerms gives every term that wants to be near other Pods, or far from
// them, with its path.
func affinityTerms(affinity *corev1.Affinity) iter.Seq2[*corev1.PodAffinityTerm, *field.Path] {
	return func(yield func(*corev1.PodAffinityTerm, *field.Path) bool) {
		if affinity == nil {
			return
		}
		terms := func(path *field.Path, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) bool {
			for i := range required {
				if !yield(&required[i], path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i)) {
					return false
				}
			}
			for i := range preferred {
				if !yield(&preferred[i].PodAffinityTerm, path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm")) {
					return false
				}
			}
			return true
		}
		path := field.NewPath("spec", "affinity")
		if a := affinity.PodAffinity; a != nil &&
			!terms(path.Child("podAffinity"), a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution) {
			return
		}
		if a := affinity.PodAntiAffinity; a != nil {
			terms(path.Child("podAntiAffinity"), a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
}
