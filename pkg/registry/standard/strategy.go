// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/borough-io/borough/pkg/requestlimits"
)

// Strategy is what the strategies of most kinds have in common: objects are written as
// they are sent, with no warnings. The strategy of a kind embeds it, and has methods of
// its own where the kind differs.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var _ rest.DeclarativeValidationStrategy = Strategy{}

// NewStrategy returns what strategies have in common.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

// AllowUnconditionalUpdate is true: an update needs no resourceVersion.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// PrepareForCreate changes nothing.
func (Strategy) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate changes nothing.
func (Strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Canonicalize changes nothing: defaulting has filled in what is missing.
func (Strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate warns of nothing.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate warns of nothing.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// ValidateDeclaratively returns the first requestlimits.MaxErrors of the errors, each once.
// The library calls declarative validation with all errors, also its own about the metadata,
// before it compares them with each other and joins their texts. Both take time that grows
// with the square of their number.
func (Strategy) ValidateDeclaratively(_ context.Context, obj, old runtime.Object, errs field.ErrorList, _ operation.Type, _ rest.DeclarativeValidationConfig) field.ErrorList {
	return requestlimits.LimitErrors(append(errs, validateMetadata(obj, old)...))
}

// validateMetadata checks that an object that a client reads can be written: a body with
// more is refused. Admission and the managers of other requests add to what was sent.
func validateMetadata(obj, old runtime.Object) field.ErrorList {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	before, err := meta.Accessor(old)
	if err != nil {
		before = &metav1.ObjectMeta{} // it is created
	}
	var errs field.ErrorList
	check := func(name string, n, old, limit int) {
		if n > limit && n > old {
			errs = append(errs, field.TooMany(field.NewPath("metadata", name), n, limit))
		}
	}
	check("labels", len(object.GetLabels()), len(before.GetLabels()), requestlimits.MaxElements)
	check("annotations", len(object.GetAnnotations()), len(before.GetAnnotations()), requestlimits.MaxElements)
	check("managedFields", countAppliers(object), countAppliers(before), requestlimits.MaxAppliers)
	return errs
}

func countAppliers(object metav1.Object) (n int) {
	for _, entry := range object.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			n++
		}
	}
	return n
}

// DeclarativeValidationConfig is empty: the kinds have no validation of this sort.
func (Strategy) DeclarativeValidationConfig(context.Context, runtime.Object, runtime.Object) rest.DeclarativeValidationConfig {
	return rest.DeclarativeValidationConfig{}
}
