// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
)

// The numbers that a ResourceQuota may have. Every write that it counts computes with
// all of them.
const (
	maxQuotaResources = 200
	maxQuotaScopes    = 50
	maxScopeValues    = 200
)

// ValidateResourceQuota checks a ResourceQuota that is created. The rules and their
// texts are those of core/v1, except for the numbers of resources and scopes.
func ValidateResourceQuota(quota *tenancy.ResourceQuota) field.ErrorList {
	errs := corevalidation.ValidateObjectMeta(&quota.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateResourceQuotaSpec(&quota.Spec, field.NewPath("spec"))...)
}

// ValidateResourceQuotaUpdate checks a ResourceQuota that replaces another: the scopes
// must not change.
func ValidateResourceQuotaUpdate(newQuota, oldQuota *tenancy.ResourceQuota) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&newQuota.ObjectMeta, &oldQuota.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateResourceQuotaSpec(&newQuota.Spec, field.NewPath("spec"))...)
	if !sets.New(newQuota.Spec.Scopes...).Equal(sets.New(oldQuota.Spec.Scopes...)) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "scopes"), newQuota.Spec.Scopes, apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

func validateResourceQuotaSpec(spec *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	if n := len(spec.Hard); n > maxQuotaResources {
		return field.ErrorList{field.TooMany(path.Child("hard"), n, maxQuotaResources)}
	}
	if n := len(spec.Scopes); n > maxQuotaScopes {
		return field.ErrorList{field.TooMany(path.Child("scopes"), n, maxQuotaScopes)}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(spec.Hard)) {
		resourcePath := path.Child("hard").Key(string(name))
		errs = append(errs, corevalidation.ValidateQuotaResourceName(name, resourcePath)...)
		errs = append(errs, corevalidation.ValidateResourceQuantity(name, spec.Hard[name], resourcePath)...)
	}
	errs = append(errs, validateQuotaScopes(spec, path.Child("scopes"))...)
	if selector := spec.ScopeSelector; selector != nil {
		errs = append(errs, validateScopeSelector(spec, selector, path.Child("scopeSelector", "matchExpressions"))...)
	}
	return errs
}

func validateQuotaScopes(spec *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, scope := range spec.Scopes {
		if !quotaScopes.Has(scope) {
			errs = append(errs, field.Invalid(path, spec.Scopes, "unsupported scope"))
		}
		for range unsupportedResources(scope, spec.Hard) {
			errs = append(errs, field.Invalid(path, spec.Scopes, "unsupported scope applied to resource"))
		}
	}
	return append(errs, validateNoConflict(sets.New(spec.Scopes...), spec.Scopes, path)...)
}

func validateScopeSelector(spec *corev1.ResourceQuotaSpec, selector *corev1.ScopeSelector, path *field.Path) field.ErrorList {
	if n := len(selector.MatchExpressions); n > maxQuotaScopes {
		return field.ErrorList{field.TooMany(path, n, maxQuotaScopes)}
	}
	var errs field.ErrorList
	scopes := sets.New[corev1.ResourceQuotaScope]()
	for _, expression := range selector.MatchExpressions {
		if !quotaScopes.Has(expression.ScopeName) {
			errs = append(errs, field.Invalid(path.Child("scopeName"), expression.ScopeName, "unsupported scope"))
		}
		for range unsupportedResources(expression.ScopeName, spec.Hard) {
			errs = append(errs, field.Invalid(path, selector, "unsupported scope applied to resource"))
		}
		errs = append(errs, validateScopeOperator(expression, path)...)
		scopes.Insert(expression.ScopeName)
	}
	return append(errs, validateNoConflict(scopes, spec.Scopes, path)...)
}

// validateScopeOperator checks the operator of an expression and the values for it.
func validateScopeOperator(expression corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if existsScopes.Has(expression.ScopeName) && expression.Operator != corev1.ScopeSelectorOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), expression.Operator,
			"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
	}
	values := path.Child("values")
	switch expression.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		switch n := len(expression.Values); {
		case n == 0:
			errs = append(errs, field.Required(values, "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		case n > maxScopeValues:
			errs = append(errs, field.TooMany(values, n, maxScopeValues))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(expression.Values) != 0 {
			errs = append(errs, field.Invalid(values, expression.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), expression.Operator, "not a valid selector operator"))
	}
	return errs
}

// validateNoConflict rejects scopes of which no object can be in both.
func validateNoConflict(scopes sets.Set[corev1.ResourceQuotaScope], value []corev1.ResourceQuotaScope, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, pair := range [][]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if scopes.HasAll(pair...) {
			errs = append(errs, field.Invalid(path, value, "conflicting scopes"))
		}
	}
	return errs
}

var (
	// existsScopes are the scopes that an object is in or not. They have no values.
	existsScopes = sets.New(
		corev1.ResourceQuotaScopeTerminating,
		corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
	)
	// quotaScopes are all scopes. VolumeAttributesClass is one of claims for volumes,
	// which are not served.
	quotaScopes = existsScopes.Union(sets.New(corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass))

	computeResources = sets.New(
		corev1.ResourceCPU, corev1.ResourceMemory,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	)
)

// unsupportedResources returns the standard resources that a quota with the scope may
// not limit.
func unsupportedResources(scope corev1.ResourceQuotaScope, hard corev1.ResourceList) []corev1.ResourceName {
	if !quotaScopes.Has(scope) {
		return nil
	}
	var unsupported []corev1.ResourceName
	for name := range hard {
		supported := !corevalidation.IsStandardQuotaResource(name)
		switch scope {
		case corev1.ResourceQuotaScopeBestEffort:
			supported = supported || name == corev1.ResourcePods
		case corev1.ResourceQuotaScopeVolumeAttributesClass:
			supported = supported || name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
		default:
			supported = supported || name == corev1.ResourcePods || computeResources.Has(name)
		}
		if !supported {
			unsupported = append(unsupported, name)
		}
	}
	return unsupported
}
