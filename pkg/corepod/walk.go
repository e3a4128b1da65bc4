// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package corepod

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Containers gives every container of the Pod with its path below that of the
// spec, in the order in which they start.
func Containers(spec *corev1.PodSpec, path *field.Path) iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
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

// ContainersWithResources gives the containers that can have resources, which
// ephemeral containers can't: first the containers, then the init containers. With
// each it gives the list that it is in.
func ContainersWithResources(spec *corev1.PodSpec) iter.Seq2[ContainerType, *corev1.Container] {
	return func(yield func(ContainerType, *corev1.Container) bool) {
		for i := range spec.Containers {
			if !yield(OrdinaryContainer, &spec.Containers[i]) {
				return
			}
		}
		for i := range spec.InitContainers {
			if !yield(InitContainer, &spec.InitContainers[i]) {
				return
			}
		}
	}
}

// ContainerType is the list of a PodSpec that a container is in.
type ContainerType int

const (
	// OrdinaryContainer is in spec.containers.
	OrdinaryContainer ContainerType = iota
	// InitContainer is in spec.initContainers.
	InitContainer
)

// String returns what messages call the container.
func (t ContainerType) String() string {
	if t == InitContainer {
		return "init container"
	}
	return "container"
}

// IsSidecar reports whether an init container keeps running next to the containers.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// AffinityTerms gives every term that asks to be near other Pods, or far from
// them, with its path.
func AffinityTerms(affinity *corev1.Affinity) iter.Seq2[*corev1.PodAffinityTerm, *field.Path] {
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
