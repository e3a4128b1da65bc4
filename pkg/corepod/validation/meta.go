// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateObjectMeta checks the metadata of an object, after its name has been
// generated.
func ValidateObjectMeta(meta *metav1.ObjectMeta, namespaced bool, validName apivalidation.ValidateNameFunc, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, namespaced, validName, path)
	return append(errs, validateMetadataFinalizers(meta.Finalizers, path.Child("finalizers"))...)
}

// ValidateObjectMetaUpdate checks what an update changes in the metadata.
func ValidateObjectMetaUpdate(newMeta, oldMeta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(newMeta, oldMeta, path)
	return append(errs, validateMetadataFinalizers(newMeta.Finalizers, path.Child("finalizers"))...)
}

// validateMetadataFinalizers adds to the library's rules one that core/v1 has
// for all its kinds.
func validateMetadataFinalizers(finalizers []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range finalizers {
		errs = append(errs, validateUnqualifiedFinalizer(name, path.Index(i))...)
	}
	return errs
}

// ValidateFinalizerName checks the name of a finalizer outside the metadata.
func ValidateFinalizerName(name string, path *field.Path) field.ErrorList {
	return append(apivalidation.ValidateFinalizerName(name, path), validateUnqualifiedFinalizer(name, path)...)
}

// validateUnqualifiedFinalizer checks that a finalizer without a domain is one of
// Kubernetes' own.
func validateUnqualifiedFinalizer(name string, path *field.Path) field.ErrorList {
	switch name {
	case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		return nil
	}
	if strings.Contains(name, "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")}
}
