// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateAffinity(affinity *corev1.Affinity, path *field.Path) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var errs field.ErrorList
	const requiredTerms, preferredTerms = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if node, path := affinity.NodeAffinity, path.Child("nodeAffinity"); node != nil {
		if node.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			errs = append(errs, validateNodeSelector(node.RequiredDuringSchedulingIgnoredDuringExecution, path.Child(requiredTerms))...)
		}
		for i, term := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			path := path.Child(preferredTerms).Index(i)
			errs = append(errs, validateWeight(term.Weight, path.Child("weight"))...)
			// A label value that no node can have does no harm in a preference.
			errs = append(errs, validateNodeSelectorTerm(&term.Preference, false, path.Child("preference"))...)
		}
	}
	if pod, path := affinity.PodAffinity, path.Child("podAffinity"); pod != nil {
		errs = append(errs, validatePodAffinityTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution, path.Child(requiredTerms))...)
		errs = append(errs, validateWeightedPodAffinityTerms(pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child(preferredTerms))...)
	}
	if pod, path := affinity.PodAntiAffinity, path.Child("podAntiAffinity"); pod != nil {
		errs = append(errs, validatePodAffinityTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution, path.Child(requiredTerms))...)
		errs = append(errs, validateWeightedPodAffinityTerms(pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child(preferredTerms))...)
	}
	return errs
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if 1 <= weight && weight <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, weight, "must be in the range 1-100")}
}

func validateNodeSelector(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	path = path.Child("nodeSelectorTerms")
	if len(selector.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i := range selector.NodeSelectorTerms {
		errs = append(errs, validateNodeSelectorTerm(&selector.NodeSelectorTerms[i], true, path.Index(i))...)
	}
	return errs
}

func validateNodeSelectorTerm(term *corev1.NodeSelectorTerm, checkLabelValues bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range term.MatchExpressions {
		errs = append(errs, validateNodeLabelRequirement(&term.MatchExpressions[i], checkLabelValues, path.Child("matchExpressions").Index(i))...)
	}
	for i := range term.MatchFields {
		errs = append(errs, validateNodeFieldRequirement(&term.MatchFields[i], path.Child("matchFields").Index(i))...)
	}
	return errs
}

const badSelectorOperator = "not a valid selector operator"

func validateNodeLabelRequirement(req *corev1.NodeSelectorRequirement, checkValues bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	values := path.Child("values")
	switch req.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(req.Values) == 0 {
			errs = append(errs, field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(req.Values) > 0 {
			errs = append(errs, field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(req.Values) != 1 {
			errs = append(errs, field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), req.Operator, badSelectorOperator))
	}
	errs = append(errs, metavalidation.ValidateLabelName(req.Key, path.Child("key"))...)
	if checkValues {
		for i, value := range req.Values {
			errs = append(errs, invalid(values.Index(i), value, content.IsLabelValue(value))...)
		}
	}
	return errs
}

// validateNodeFieldRequirement checks for a node by its name, the one field that
// nodes can be selected by.
func validateNodeFieldRequirement(req *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	values := path.Child("values")
	switch req.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(req.Values) != 1 {
			errs = append(errs, field.Required(values, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), req.Operator, badSelectorOperator))
	}
	if req.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(path.Child("key"), req.Key, "not a valid field selector key"))
	}
	for i, value := range req.Values {
		errs = append(errs, dnsSubdomain(values.Index(i), value)...)
	}
	return errs
}

func validatePodAffinityTerms(terms []corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range terms {
		errs = append(errs, validatePodAffinityTerm(&terms[i], path.Index(i))...)
	}
	return errs
}

func validateWeightedPodAffinityTerms(terms []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range terms {
		path := path.Index(i)
		errs = append(errs, validateWeight(terms[i].Weight, path.Child("weight"))...)
		errs = append(errs, validatePodAffinityTerm(&terms[i].PodAffinityTerm, path.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodAffinityTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	errs := validateLabelSelector(term.LabelSelector, path.Child("labelSelector"))
	errs = append(errs, validateLabelSelector(term.NamespaceSelector, path.Child("namespaceSelector"))...)
	for _, namespace := range term.Namespaces {
		// kube-apiserver's path leaves out the plural and the index.
		errs = append(errs, dnsLabel(path.Child("namespace"), namespace)...)
	}
	errs = append(errs, validateMatchLabelKeys(term.MatchLabelKeys, term.MismatchLabelKeys, term.LabelSelector, path)...)
	if term.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metavalidation.ValidateLabelName(term.TopologyKey, path.Child("topologyKey"))...)
}

func validateLabelSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

// validateMatchLabelKeys checks keys that are to match, or not to match, the
// values of the Pod's own labels. On creation they are made part of the selector,
// so each is expected there once.
func validateMatchLabelKeys(match, mismatch []string, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := validateLabelKeys(match, selector, path.Child("matchLabelKeys"))
	errs = append(errs, validateLabelKeys(mismatch, selector, path.Child("mismatchLabelKeys"))...)
	if selector != nil {
		index := map[string]int{}
		for i, key := range match {
			index[key] = i
		}
		selected := sets.KeySet(selector.MatchLabels)
		for _, expression := range selector.MatchExpressions {
			if i, ok := index[expression.Key]; ok && selected.Has(expression.Key) {
				// kube-apiserver's path has the index but not the name.
				errs = append(errs, field.Invalid(path.Index(i), expression.Key, "exists in both matchLabelKeys and labelSelector"))
			}
			selected.Insert(expression.Key)
		}
	}
	mismatched := sets.New(mismatch...)
	for i, key := range match {
		if mismatched.Has(key) {
			errs = append(errs, field.Invalid(path.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
	return errs
}

func validateLabelKeys(keys []string, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if len(keys) > 0 && selector == nil {
		return field.ErrorList{field.Forbidden(path, "must not be specified when labelSelector is not set")}
	}
	var errs field.ErrorList
	for i, key := range keys {
		errs = append(errs, metavalidation.ValidateLabelName(key, path.Index(i))...)
	}
	return errs
}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		t, path := &tolerations[i], path.Index(i)
		operator := path.Child("operator")
		if t.Key != "" {
			errs = append(errs, metavalidation.ValidateLabelName(t.Key, path.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(operator, t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(path.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "": // with the value's errors at the operator, as in kube-apiserver
			if msgs := content.IsLabelValue(t.Value); len(msgs) > 0 {
				errs = append(errs, field.Invalid(operator, t.Value, strings.Join(msgs, ";")))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(operator, t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
			// These take a feature gate that is off by default, though they are named.
			errs = append(errs, field.NotSupported(operator, t.Operator, []corev1.TolerationOperator{
				corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt}))
		default:
			errs = append(errs, field.NotSupported(operator, t.Operator, []corev1.TolerationOperator{
				corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if t.Effect != "" { // empty stands for all
			errs = append(errs, supported(path.Child("effect"), t.Effect,
				corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		}
	}
	return errs
}

func validateReadinessGates(gates []corev1.PodReadinessGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, gate := range gates {
		errs = append(errs, qualifiedName(path.Index(i).Child("conditionType"), string(gate.ConditionType))...)
	}
	return errs
}

func validateSchedulingGates(gates []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, gate := range gates {
		errs = append(errs, qualifiedName(path.Index(i), gate.Name)...)
		errs = append(errs, insertUnique(names, path.Index(i), gate.Name)...)
	}
	return errs
}

func validateSchedulingGroup(group *corev1.PodSchedulingGroup, path *field.Path) field.ErrorList {
	if group == nil {
		return nil
	}
	path = path.Child("podGroupName")
	if group.PodGroupName == nil {
		return field.ErrorList{field.Invalid(path, group.PodGroupName, "must specify one of: `podGroupName`")}
	}
	return dnsSubdomain(path, *group.PodGroupName)
}
