// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/corepod"
	"github.com/borough-io/borough/pkg/corepod/qos"
)

// matches reports whether the object is in all scopes of a quota. Only a Pod can be in
// a scope.
func (u *Usage) matches(spec *corev1.ResourceQuotaSpec) bool {
	for _, scope := range spec.Scopes {
		if !u.matchesScope(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}) {
			return false
		}
	}
	if spec.ScopeSelector == nil {
		return true
	}
	return !slices.ContainsFunc(spec.ScopeSelector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool {
		return !u.matchesScope(r)
	})
}

func (u *Usage) matchesScope(r corev1.ScopedResourceSelectorRequirement) bool {
	if u.scopes == nil {
		return false
	}
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return u.scopes.deadline
	case corev1.ResourceQuotaScopeNotTerminating:
		return !u.scopes.deadline
	case corev1.ResourceQuotaScopeBestEffort:
		return u.scopes.bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !u.scopes.bestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		return matchesPriorityClass(u.scopes.priorityClass, r)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return u.scopes.crossNamespaceAffinity
	}
	return false
}

// hasSameScopes reports whether the same quotas match both objects.
func (u *Usage) hasSameScopes(other *Usage) bool {
	if u.scopes == nil || other.scopes == nil {
		return u.scopes == other.scopes
	}
	return *u.scopes == *other.scopes
}

// scopes is what of a Pod decides which scopes it is in.
type scopes struct {
	deadline, bestEffort, crossNamespaceAffinity bool

	priorityClass string
}

func scopesOf(pod *corev1.Pod) *scopes {
	return &scopes{
		deadline:               hasDeadline(pod),
		bestEffort:             isBestEffort(pod),
		crossNamespaceAffinity: hasCrossNamespaceAffinity(pod.Spec.Affinity),
		priorityClass:          pod.Spec.PriorityClassName,
	}
}

func hasDeadline(pod *corev1.Pod) bool {
	deadline := pod.Spec.ActiveDeadlineSeconds
	return deadline != nil && *deadline >= 0
}

func isBestEffort(pod *corev1.Pod) bool {
	class := pod.Status.QOSClass
	if class == "" {
		class = qos.ComputePodQOS(pod)
	}
	return class == corev1.PodQOSBestEffort
}

// matchesPriorityClass follows the rules of label selectors, where a Pod without a
// class has no such label.
func matchesPriorityClass(class string, r corev1.ScopedResourceSelectorRequirement) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return class == "" || !slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	}
	return false
}

// hasCrossNamespaceAffinity reports whether an affinity names other Namespaces.
func hasCrossNamespaceAffinity(affinity *corev1.Affinity) bool {
	for term := range corepod.AffinityTerms(affinity) {
		if len(term.Namespaces) != 0 || term.NamespaceSelector != nil {
			return true
		}
	}
	return false
}
