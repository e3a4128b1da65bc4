// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rbacvalidation "github.com/borough-io/borough/pkg/apis/rbac/validation"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
)

// The numbers that a namespaceSelector may have. Every create of a Namespace evaluates
// all selectors.
const (
	maxSelectorRequirements = 50
	maxSelectorValues       = 200
)

// RequestedRoleBinding is the name of the RoleBinding that a NamespaceRequest creates.
const RequestedRoleBinding = "admin"

// anyNamespace stands for the one in which a template will be applied.
const anyNamespace = "any"

// ValidateNamespaceTemplate checks a NamespaceTemplate: its content by the rules for the
// kinds of that. Without rights, it cannot have a RoleBinding.
func ValidateNamespaceTemplate(template *tenancy.NamespaceTemplate, rights bool) field.ErrorList {
	errs := corevalidation.ValidateObjectMeta(&template.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, path := &template.Spec, field.NewPath("spec")
	errs = append(errs, validateNamespaceSelector(spec.NamespaceSelector, path.Child("namespaceSelector"))...)
	if limitRange := spec.LimitRange.In(anyNamespace); limitRange != nil {
		errs = append(errs, below(path.Child("limitRange"), ValidateLimitRange(limitRange))...)
	}
	if quota := spec.ResourceQuota.In(anyNamespace); quota != nil {
		errs = append(errs, below(path.Child("resourceQuota"), ValidateResourceQuota(quota))...)
	}
	if binding := spec.RoleBinding.In(anyNamespace); binding != nil {
		path := path.Child("roleBinding")
		if !rights {
			return append(errs, field.Forbidden(path, "needs a standalone server: in a cluster, rights are granted in the cluster"))
		}
		if binding.Name == RequestedRoleBinding {
			errs = append(errs, field.Invalid(path.Child("metadata", "name"), binding.Name, "is the name of the role binding that a namespacerequest creates"))
		}
		errs = append(errs, below(path, rbacvalidation.ValidateRoleBinding(binding))...)
	}
	return errs
}

// ValidateNamespaceTemplateUpdate checks a NamespaceTemplate that replaces another.
func ValidateNamespaceTemplateUpdate(template, old *tenancy.NamespaceTemplate, rights bool) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&template.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateNamespaceTemplate(template, rights)...)
}

func validateNamespaceSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	if n := len(selector.MatchLabels); n > maxSelectorRequirements {
		return field.ErrorList{field.TooMany(path.Child("matchLabels"), n, maxSelectorRequirements)}
	}
	if n := len(selector.MatchExpressions); n > maxSelectorRequirements {
		return field.ErrorList{field.TooMany(path.Child("matchExpressions"), n, maxSelectorRequirements)}
	}
	for i, expression := range selector.MatchExpressions {
		if n := len(expression.Values); n > maxSelectorValues {
			return field.ErrorList{field.TooMany(path.Child("matchExpressions").Index(i).Child("values"), n, maxSelectorValues)}
		}
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// below returns the errors of an object with their fields below a path.
func below(path *field.Path, errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if err.Type == field.ErrorTypeRequired && err.Field == "metadata.name" {
			err.Detail = "" // it says that the name may be generated
		}
		err.Field = path.String() + "." + err.Field
	}
	return errs
}
