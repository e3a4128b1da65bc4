// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates the objects of rbac.authorization.k8s.io by the rules,
// and with the messages, of pkg/apis/rbac/validation in Kubernetes.
package validation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// validateName allows all names that can be part of a path, of which the server accepts as many
// bytes as of a name.
func validateName(name string, _ bool) []string {
	if n := requestlimits.EscapedSize(name); n > requestlimits.MaxNameLength {
		return []string{fmt.Sprintf("has %d bytes when it is escaped, more than the maximum of %d", n, requestlimits.MaxNameLength)}
	}
	return content.IsPathSegmentName(name)
}

func validateMeta(meta *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	return corevalidation.ValidateObjectMeta(meta, namespaced, validateName, field.NewPath("metadata"))
}

func validateMetaUpdate(meta, old *metav1.ObjectMeta) field.ErrorList {
	return corevalidation.ValidateObjectMetaUpdate(meta, old, field.NewPath("metadata"))
}

// ValidateRole validates a new Role.
func ValidateRole(role *rbacv1.Role) field.ErrorList {
	return declarativeLast(validateRole(role))
}

func validateRole(role *rbacv1.Role) field.ErrorList {
	return append(validateMeta(&role.ObjectMeta, true), validateRules(role.Rules, true)...)
}

// ValidateRoleUpdate validates an update of a Role.
func ValidateRoleUpdate(role, old *rbacv1.Role) field.ErrorList {
	return declarativeLast(append(validateRole(role), validateMetaUpdate(&role.ObjectMeta, &old.ObjectMeta)...))
}

// ValidateClusterRole validates a new ClusterRole.
func ValidateClusterRole(role *rbacv1.ClusterRole) field.ErrorList {
	return declarativeLast(validateClusterRole(role, metav1validation.LabelSelectorValidationOptions{}))
}

// ValidateClusterRoleUpdate validates an update of a ClusterRole. Label selectors may
// have values that are not valid if the old ones have such values.
func ValidateClusterRoleUpdate(role, old *rbacv1.ClusterRole) field.ErrorList {
	var options metav1validation.LabelSelectorValidationOptions
	options.AllowInvalidLabelValueInSelector = len(validateAggregation(old.AggregationRule, options)) > 0
	return declarativeLast(append(validateClusterRole(role, options), validateMetaUpdate(&role.ObjectMeta, &old.ObjectMeta)...))
}

func validateClusterRole(role *rbacv1.ClusterRole, options metav1validation.LabelSelectorValidationOptions) field.ErrorList {
	errs := validateMeta(&role.ObjectMeta, false)
	errs = append(errs, validateRules(role.Rules, false)...)
	return append(errs, validateAggregation(role.AggregationRule, options)...)
}

func validateAggregation(rule *rbacv1.AggregationRule, options metav1validation.LabelSelectorValidationOptions) field.ErrorList {
	if rule == nil {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(rule.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range rule.ClusterRoleSelectors {
		selector := &rule.ClusterRoleSelectors[i]
		invalid := metav1validation.ValidateLabelSelector(selector, options, path.Index(i))
		// The conversion of an invalid selector fails, too, with errors that repeat a key for
		// each of its values.
		if len(invalid) == 0 {
			if _, err := metav1.LabelSelectorAsSelector(selector); err == nil {
				continue
			}
		}
		errs = append(append(errs, invalid...), field.Invalid(path.Index(i), nil, "invalid label selector."))
	}
	return errs
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, validateRule(&rules[i], namespaced, field.NewPath("rules").Index(i))...)
	}
	return errs
}

// declarativeLast returns the errors in the order of Kubernetes, which finds missing verbs and
// names by declarative validation: after all other errors, in the order of the fields. It does
// not validate a roleRef declaratively that has changed.
func declarativeLast(errs field.ErrorList) field.ErrorList {
	changed := slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Field == "roleRef" })
	rank := func(err *field.Error) int {
		path, name, _ := strings.Cut(err.Field, ".")
		switch {
		case err.Type != field.ErrorTypeRequired || name != "name" && name != "verbs" || path == "metadata":
			return 0
		case path == "roleRef" && changed:
			return 0
		case path == "roleRef":
			return 2 // after those of subjects
		}
		return 1
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(rank(a), rank(b)) })
	return errs
}

func validateRule(rule *rbacv1.PolicyRule, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Verbs) == 0 {
		errs = append(errs, field.Required(path.Child("verbs"), ""))
	}
	if len(rule.NonResourceURLs) > 0 {
		urls := path.Child("nonResourceURLs")
		if namespaced {
			errs = append(errs, field.Invalid(urls, rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
		}
		if len(rule.APIGroups) > 0 || len(rule.Resources) > 0 || len(rule.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(urls, rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
		}
		return errs
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}
