// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateLease checks a new Lease. Unlike the kinds of core/v1, it can have finalizers
// whose names are not qualified.
func ValidateLease(lease *coordinationv1.Lease) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&lease.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateLeaseSpec(&lease.Spec, field.NewPath("spec"))...)
}

// ValidateLeaseUpdate checks an update.
func ValidateLeaseUpdate(lease, old *coordinationv1.Lease) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&lease.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateLeaseSpec(&lease.Spec, field.NewPath("spec"))...)
}

func validateLeaseSpec(spec *coordinationv1.LeaseSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if seconds := spec.LeaseDurationSeconds; seconds != nil && *seconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *seconds, "must be greater than 0"))
	}
	if transitions := spec.LeaseTransitions; transitions != nil && *transitions < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *transitions, "must be greater than or equal to 0"))
	}
	return errs
}
