// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
)

// ValidateNamespace checks a Namespace that is created or updated. The rules
// are those of core/v1.
func ValidateNamespace(ns *tenancy.Namespace) field.ErrorList {
	errs := corevalidation.ValidateObjectMeta(&ns.ObjectMeta, false, apivalidation.ValidateNamespaceName, field.NewPath("metadata"))
	path := field.NewPath("spec", "finalizers")
	for _, finalizer := range ns.Spec.Finalizers {
		// core/v1 names the list and not the item here, unlike in finalize.
		errs = append(errs, corevalidation.ValidateFinalizerName(string(finalizer), path)...)
	}
	return errs
}

// ValidateNamespaceUpdate checks what an update changes.
func ValidateNamespaceUpdate(newNS, oldNS *tenancy.Namespace) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&newNS.ObjectMeta, &oldNS.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateRequesterUpdate(newNS, oldNS)...)
	// It would have no effect.
	if newNS.Spec.DeletionProtection && !oldNS.Spec.DeletionProtection && !oldNS.DeletionTimestamp.IsZero() {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "deletionProtection"), "may not be set on a namespace that is being deleted: its deletion cannot be canceled"))
	}
	return errs
}

// ValidateNamespaceStatusUpdate checks what an update of the status changes:
// the phase is Terminating exactly when the Namespace is being deleted, and only
// then can it have status.termination.
func ValidateNamespaceStatusUpdate(newNS, oldNS *tenancy.Namespace) field.ErrorList {
	errs := ValidateNamespaceUpdate(newNS, oldNS)
	// core/v1 spells this path so, and clients see it.
	path := field.NewPath("status", "Phase")
	deleting := !newNS.DeletionTimestamp.IsZero()
	switch {
	case !deleting && newNS.Status.Phase != tenancy.NamespaceActive:
		errs = append(errs, field.Invalid(path, newNS.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty"))
	case deleting && newNS.Status.Phase != tenancy.NamespaceTerminating:
		errs = append(errs, field.Invalid(path, newNS.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"))
	}
	if !deleting && newNS.Status.Termination != nil {
		errs = append(errs, field.Forbidden(field.NewPath("status", "termination"), "may only be set if `deletionTimestamp` is not empty"))
	}
	return errs
}

// ValidateNamespaceFinalizeUpdate checks what a call of finalize changes.
func ValidateNamespaceFinalizeUpdate(newNS, oldNS *tenancy.Namespace) field.ErrorList {
	errs := ValidateNamespaceUpdate(newNS, oldNS)
	path := field.NewPath("spec", "finalizers")
	for i, finalizer := range newNS.Spec.Finalizers {
		errs = append(errs, corevalidation.ValidateFinalizerName(string(finalizer), path.Index(i))...)
	}
	return errs
}
