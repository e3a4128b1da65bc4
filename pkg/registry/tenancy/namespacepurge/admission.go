// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// bothPhases is admission with audit annotations. Its phases do nothing for an operation
// that it does not handle.
type bothPhases interface {
	admission.MutationInterface
	admission.ValidationInterface
}

// newDeleteAdmission returns admission for the DELETE of objects.
func newDeleteAdmission(i admission.Interface) bothPhases {
	return admission.WithAudit(copying{i}).(bothPhases)
}

// admitDelete asks admission about the DELETE of an object, as the library's
// AdmissionToValidateObjectDeleteFunc does, but does not copy the object.
func admitDelete(ctx context.Context, i bothPhases, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := i.Admit(ctx, a, o); err != nil {
		return err
	}
	return i.Validate(ctx, a, o)
}

// copying gives each phase of admission a copy of the old object, in case a plugin modifies
// it, and makes the copy when a plugin asks for the object: most ask for no object of a
// DELETE, and a purge deletes many.
type copying struct{ admission.Interface }

var (
	_ admission.MutationInterface   = copying{}
	_ admission.ValidationInterface = copying{}
)

// Admit calls the mutating plugins.
func (c copying) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if mutating, ok := c.Interface.(admission.MutationInterface); ok {
		return mutating.Admit(ctx, &copied{Attributes: a}, o)
	}
	return nil
}

// Validate calls the validating plugins.
func (c copying) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if validating, ok := c.Interface.(admission.ValidationInterface); ok {
		return validating.Validate(ctx, &copied{Attributes: a}, o)
	}
	return nil
}

// copied are attributes with a copy of the old object.
type copied struct {
	admission.Attributes
	old runtime.Object
}

// GetOldObject returns the copy.
func (c *copied) GetOldObject() runtime.Object {
	if c.old == nil {
		if original := c.Attributes.GetOldObject(); original != nil {
			c.old = original.DeepCopyObject()
		}
	}
	return c.old
}
