// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/corepod/prepare"
	"github.com/borough-io/borough/pkg/corepod/validation"
	"github.com/borough-io/borough/pkg/corepod/warnings"
)

// PrepareForUpdate resets everything except the status, labels, annotations and
// finalizers. It keeps the QoS class and observed generations if a client that does
// not know them omits them.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	prepare.ForStatusUpdate(core(obj), core(old))
}

// ValidateUpdate checks an update of the status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodStatusUpdate(core(obj), core(old))
}

// WarningsOnUpdate warns of addresses that are not in canonical form.
func (StatusStrategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return warnings.ForStatus(&core(obj).Status)
}

// GetResetFields names what PrepareForUpdate keeps.
func (StatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return coregroup.ResetFields(
		fieldpath.MakePathOrDie("spec"),
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	)
}

// PrepareForUpdate keeps all but the resources of the Pod and of its containers
// and how they are resized. Containers that are not those of the stored Pod are
// left for validation to refuse.
func (ResizeStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	prepare.ForResize(core(obj), core(old))
}

// ValidateUpdate checks a resize.
func (ResizeStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodResize(core(obj), core(old))
}

// PrepareForUpdate keeps all but the ephemeral containers.
func (EphemeralContainersStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	prepare.ForEphemeralContainersUpdate(core(obj), core(old))
}

// ValidateUpdate checks that ephemeral containers are only added.
func (EphemeralContainersStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodEphemeralContainersUpdate(core(obj), core(old))
}
