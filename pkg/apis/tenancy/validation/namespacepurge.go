// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
)

// ValidateNamespacePurge checks a NamespacePurge.
func ValidateNamespacePurge(purge *tenancy.NamespacePurge) field.ErrorList {
	errs := corevalidation.ValidateObjectMeta(&purge.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if purge.Spec.NamespaceUID == "" {
		errs = append(errs, field.Required(field.NewPath("spec", "namespaceUID"), "must be the metadata.uid of the namespace to purge"))
	}
	return errs
}
