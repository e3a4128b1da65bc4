// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateObjectMeta checks the metadata of an object, after its name has been
// generated.
func validateObjectMeta(meta *metav1.ObjectMeta, namespaced bool, validName apivalidation.ValidateNameFunc, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, namespaced, validName, path)
	return append(errs, validateMetadataFinalizers(meta.Finalizers, path.Child("finalizers"))...)
}

// validateObjectMetaUpdate checks what an update changes in the metadata.
func validateObjectMetaUpdate(newMeta, oldMeta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(newMeta, oldMeta, path)
	return append(errs, validateMetadataFinalizers(newMeta.Finalizers, path.Child("finalizers"))...)
}

// validateMetadataFinalizers adds to the library's rules one that core/v1 has
// for all its kinds: a finalizer without a domain is one of Kubernetes' own.
func validateMetadataFinalizers(finalizers []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range finalizers {
		if !strings.Contains(name, "/") && !isStandardFinalizer(name) {
			errs = append(errs, field.Invalid(path.Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}
