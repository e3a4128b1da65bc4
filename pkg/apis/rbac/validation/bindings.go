// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateRoleBinding validates a new RoleBinding.
func ValidateRoleBinding(binding *rbacv1.RoleBinding) field.ErrorList {
	return declarativeLast(validateRoleBinding(binding))
}

func validateRoleBinding(binding *rbacv1.RoleBinding) field.ErrorList {
	errs := validateMeta(&binding.ObjectMeta, true)
	errs = append(errs, validateRoleRef(binding.RoleRef, "Role", "ClusterRole")...)
	return append(errs, validateSubjects(binding.Subjects, true)...)
}

// ValidateRoleBindingUpdate validates an update of a RoleBinding.
func ValidateRoleBindingUpdate(binding, old *rbacv1.RoleBinding) field.ErrorList {
	errs := validateRoleBinding(binding)
	errs = append(errs, validateMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta)...)
	return declarativeLast(append(errs, validateSameRoleRef(binding.RoleRef, old.RoleRef)...))
}

// ValidateClusterRoleBinding validates a new ClusterRoleBinding.
func ValidateClusterRoleBinding(binding *rbacv1.ClusterRoleBinding) field.ErrorList {
	return declarativeLast(validateClusterRoleBinding(binding))
}

func validateClusterRoleBinding(binding *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := validateMeta(&binding.ObjectMeta, false)
	errs = append(errs, validateRoleRef(binding.RoleRef, "ClusterRole")...)
	return append(errs, validateSubjects(binding.Subjects, false)...)
}

// ValidateClusterRoleBindingUpdate validates an update of a ClusterRoleBinding.
func ValidateClusterRoleBindingUpdate(binding, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := validateClusterRoleBinding(binding)
	errs = append(errs, validateMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta)...)
	return declarativeLast(append(errs, validateSameRoleRef(binding.RoleRef, old.RoleRef)...))
}

func validateRoleRef(ref rbacv1.RoleRef, kinds ...string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(kinds, ref.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), ref.Kind, kinds))
	}
	if ref.Name == "" {
		return append(errs, field.Required(path.Child("name"), ""))
	}
	for _, message := range validateName(ref.Name, false) {
		errs = append(errs, field.Invalid(path.Child("name"), ref.Name, message))
	}
	return errs
}

// internalRoleRef makes the value in an error look as in Kubernetes, whose internal
// type has no JSON names.
type internalRoleRef struct{ APIGroup, Kind, Name string }

// validateSameRoleRef makes the role of a binding immutable: a user who may change
// the subjects could otherwise grant another role.
func validateSameRoleRef(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), internalRoleRef(ref), apimachineryvalidation.FieldImmutableErrorMsg)}
}

func validateSubjects(subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i, subject := range subjects {
		errs = append(errs, validateSubject(subject, namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(subject rbacv1.Subject, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if subject.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		if subject.Name != "" {
			for _, message := range apimachineryvalidation.ValidateServiceAccountName(subject.Name, false) {
				errs = append(errs, field.Invalid(path.Child("name"), subject.Name, message))
			}
		}
		if subject.APIGroup != "" {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{""}))
		}
		if !namespaced && subject.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		if subject.APIGroup != rbacv1.GroupName {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{rbacv1.GroupName}))
		}
	default:
		kinds := []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}
		errs = append(errs, field.NotSupported(path.Child("kind"), subject.Kind, kinds))
	}
	return errs
}
