// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authorization

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules and messages of pkg/apis/authorization/validation in Kubernetes.

func validateSpec(spec authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateExclusive(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	return append(errs, validateSelectors(spec.ResourceAttributes)...)
}

func validateAttributes(resource *authorizationv1.ResourceAttributes, nonResource *authorizationv1.NonResourceAttributes) field.ErrorList {
	return append(validateExclusive(resource, nonResource), validateSelectors(resource)...)
}

func validateExclusive(resource *authorizationv1.ResourceAttributes, nonResource *authorizationv1.NonResourceAttributes) field.ErrorList {
	if (resource == nil) != (nonResource == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), nonResource, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

func validateMeta(meta metav1.ObjectMeta) field.ErrorList {
	meta.ManagedFields = nil
	if equality.Semantic.DeepEqual(metav1.ObjectMeta{}, meta) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), meta, "must be empty")}
}

func validateLocal(review *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
	errs := validateSpec(review.Spec)
	meta := review.ObjectMeta
	meta.Namespace, meta.ManagedFields = "", nil
	if !equality.Semantic.DeepEqual(metav1.ObjectMeta{}, meta) {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), review.ObjectMeta, "must be empty except for namespace"))
	}
	if a := review.Spec.ResourceAttributes; a != nil && a.Namespace != review.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), a.Namespace, "must match metadata.namespace"))
	}
	if a := review.Spec.NonResourceAttributes; a != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec.nonResourceAttributes"), a, "disallowed on this kind of request"))
	}
	return errs
}

func validateSelectors(attributes *authorizationv1.ResourceAttributes) field.ErrorList {
	if attributes == nil {
		return nil
	}
	var errs field.ErrorList
	root := field.NewPath("spec.resourceAttributes")
	if s := attributes.FieldSelector; s != nil {
		path := root.Child("fieldSelector")
		errs = append(errs, validateSelector(path, s.RawSelector, len(s.Requirements))...)
		for i, r := range s.Requirements {
			// Newer clients may use operators that this server does not know.
			options := metav1validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
			errs = append(errs, metav1validation.ValidateFieldSelectorRequirement(r, options, path.Child("requirements").Index(i))...)
		}
	}
	if s := attributes.LabelSelector; s != nil {
		path := root.Child("labelSelector")
		errs = append(errs, validateSelector(path, s.RawSelector, len(s.Requirements))...)
		for i, r := range s.Requirements {
			options := metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
			errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(r, options, path.Child("requirements").Index(i))...)
		}
	}
	return errs
}

func validateSelector(path *field.Path, raw string, requirements int) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(path.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path))}
	}
	return nil
}
