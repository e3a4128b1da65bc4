// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const updatableFields = "`spec.containers[*].image`," +
	"`spec.initContainers[*].image`," +
	"`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// ValidatePodUpdate checks what an update of a Pod changes: images may be
// changed, the deadline set or brought forward, tolerations added and scheduling
// gates removed. While there are gates it may also be narrowed down which nodes
// the Pod can run on.
func ValidatePodUpdate(newPod, oldPod *corev1.Pod) field.ErrorList {
	metaPath, path := field.NewPath("metadata"), field.NewPath("spec")
	errs := ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, metaPath)
	errs = append(errs, validatePod(newPod, oldPod)...)
	errs = append(errs, validatePodAnnotationUpdates(newPod, oldPod, metaPath.Child("annotations"))...)

	newSpec, oldSpec := &newPod.Spec, &oldPod.Spec
	const addedOrRemoved = "pod updates may not add or remove containers"
	if len(newSpec.Containers) != len(oldSpec.Containers) {
		return append(errs, field.Forbidden(path.Child("containers"), addedOrRemoved))
	}
	if len(newSpec.InitContainers) != len(oldSpec.InitContainers) {
		return append(errs, field.Forbidden(path.Child("initContainers"), addedOrRemoved))
	}
	if err := validateDeadlineUpdate(newSpec.ActiveDeadlineSeconds, oldSpec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds")); err != nil {
		errs = append(errs, err)
		if newSpec.ActiveDeadlineSeconds != nil {
			return errs
		}
	}
	errs = append(errs, validateAddedTolerations(newSpec.Tolerations, oldSpec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateRemovedSchedulingGates(newSpec.SchedulingGates, oldSpec.SchedulingGates, path.Child("schedulingGates"))...)
	if apiequality.Semantic.DeepEqual(newSpec, oldSpec) {
		return errs
	}

	// What may change is set back, so that nothing may differ in what is left.
	rest := newSpec.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = oldSpec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = oldSpec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds = oldSpec.ActiveDeadlineSeconds
	rest.Tolerations = oldSpec.Tolerations
	rest.SchedulingGates = oldSpec.SchedulingGates
	if from, to := oldSpec.TerminationGracePeriodSeconds, rest.TerminationGracePeriodSeconds; from != nil && *from < 0 && to != nil && *to == 1 {
		rest.TerminationGracePeriodSeconds = from
	}
	if len(oldSpec.SchedulingGates) > 0 {
		errs = append(errs, validateNarrowedNodes(newSpec, oldSpec, path)...)
		rest.NodeSelector = oldSpec.NodeSelector
		rest.Affinity = withOldNodeAffinity(rest.Affinity, oldSpec.Affinity)
	}
	if !apiequality.Semantic.DeepEqual(rest, oldSpec) {
		errs = append(errs, field.Forbidden(path,
			fmt.Sprintf("pod updates may not change fields other than %s\n%v", updatableFields, new(differences).of(oldSpec, rest))))
	}
	return errs
}

func validateDeadlineUpdate(newSeconds, oldSeconds *int64, path *field.Path) *field.Error {
	switch {
	case newSeconds == nil && oldSeconds == nil:
		return nil
	case newSeconds == nil:
		return field.Invalid(path, newSeconds, "must not update from a positive integer to nil value")
	case *newSeconds < 0 || *newSeconds > math.MaxInt32:
		return field.Invalid(path, *newSeconds, validation.InclusiveRangeError(0, math.MaxInt32))
	case oldSeconds != nil && *oldSeconds < *newSeconds:
		return field.Invalid(path, *newSeconds, "must be less than or equal to previous value")
	}
	return nil
}

// validateAddedTolerations checks that every old toleration is still there,
// regardless of its tolerationSeconds.
func validateAddedTolerations(newTolerations, oldTolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	timeless := func(t corev1.Toleration) corev1.Toleration {
		t.TolerationSeconds = nil
		return t
	}
	kept := sets.New[corev1.Toleration]()
	for _, t := range newTolerations {
		kept.Insert(timeless(t))
	}
	for _, t := range oldTolerations {
		if !kept.Has(timeless(t)) {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

func validateRemovedSchedulingGates(newGates, oldGates []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	old := sets.New(oldGates...)
	last := map[corev1.PodSchedulingGate]int{}
	for i, gate := range newGates {
		last[gate] = i
	}
	for i, gate := range newGates {
		// A gate that is there twice is reported once.
		if !old.Has(gate) && last[gate] == i {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name)))
		}
	}
	return errs
}

// validateNarrowedNodes checks that the node selector and the node affinity of
// a gated Pod have only been added to.
func validateNarrowedNodes(newSpec, oldSpec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for key, value := range oldSpec.NodeSelector {
		if v, kept := newSpec.NodeSelector[key]; !kept || v != value {
			errs = append(errs, field.Invalid(path.Child("nodeSelector"), newSpec.NodeSelector,
				"only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
			break
		}
	}
	oldTerms := requiredNodeTerms(oldSpec.Affinity)
	if len(oldTerms) == 0 { // no node was ruled out
		return errs
	}
	newTerms := requiredNodeTerms(newSpec.Affinity)
	path = path.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	if len(oldTerms) != len(newTerms) {
		return append(errs, field.Invalid(path, newTerms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed"))
	}
	for i := range oldTerms {
		if !isNarrowedTerm(&newTerms[i], &oldTerms[i]) {
			errs = append(errs, field.Invalid(path.Index(i), newTerms[i], "only additions are allowed (no mutations or deletions)"))
		}
	}
	return errs
}

func requiredNodeTerms(affinity *corev1.Affinity) []corev1.NodeSelectorTerm {
	if node := nodeAffinity(affinity); node != nil && node.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	return nil
}

func nodeAffinity(affinity *corev1.Affinity) *corev1.NodeAffinity {
	if affinity == nil {
		return nil
	}
	return affinity.NodeAffinity
}

// isNarrowedTerm reports whether the new term is the old one with requirements
// added. An empty term matches no node, so adding to it would widen it.
func isNarrowedTerm(newTerm, oldTerm *corev1.NodeSelectorTerm) bool {
	if len(oldTerm.MatchExpressions) == 0 && len(oldTerm.MatchFields) == 0 {
		return len(newTerm.MatchExpressions) == 0 && len(newTerm.MatchFields) == 0
	}
	return hasPrefix(newTerm.MatchExpressions, oldTerm.MatchExpressions) &&
		hasPrefix(newTerm.MatchFields, oldTerm.MatchFields)
}

func hasPrefix(list, prefix []corev1.NodeSelectorRequirement) bool {
	return len(list) >= len(prefix) && apiequality.Semantic.DeepEqual(list[:len(prefix)], prefix)
}

// withOldNodeAffinity sets the node affinity back to the old one.
func withOldNodeAffinity(affinity, old *corev1.Affinity) *corev1.Affinity {
	if apiequality.Semantic.DeepEqual(nodeAffinity(affinity), nodeAffinity(old)) {
		return affinity
	}
	var rest corev1.Affinity
	if affinity != nil {
		rest = *affinity
	}
	rest.NodeAffinity = nodeAffinity(old)
	if old == nil && rest == (corev1.Affinity{}) {
		return nil
	}
	return &rest
}

// ValidatePodEphemeralContainersUpdate checks that ephemeral containers are only
// added. The strategy ensures that nothing else changes.
func ValidatePodEphemeralContainersUpdate(newPod, oldPod *corev1.Pod) field.ErrorList {
	if isMirror(&oldPod.ObjectMeta) {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	metaPath, path := field.NewPath("metadata"), field.NewPath("spec", "ephemeralContainers")
	errs := ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, metaPath)
	errs = append(errs, validatePod(newPod, oldPod)...)
	errs = append(errs, validatePodAnnotationUpdates(newPod, oldPod, metaPath.Child("annotations"))...)

	byName := make(map[string]*corev1.EphemeralContainer, len(newPod.Spec.EphemeralContainers))
	for i := range newPod.Spec.EphemeralContainers { // a patch may reorder them
		byName[newPod.Spec.EphemeralContainers[i].Name] = &newPod.Spec.EphemeralContainers[i]
	}
	var shown differences
	for i := range oldPod.Spec.EphemeralContainers {
		before := &oldPod.Spec.EphemeralContainers[i]
		if after, kept := byName[before.Name]; !kept {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", before.Name)))
		} else if !apiequality.Semantic.DeepEqual(before, after) {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", before.Name, shown.of(before, after))))
		}
	}
	return errs
}

// isMirror reports whether the Pod represents a static Pod, which the kubelet reads
// from a file.
func isMirror(meta *metav1.ObjectMeta) bool {
	_, mirror := meta.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}
