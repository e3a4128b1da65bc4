// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limitrange holds the rules by which LimitRanges are written, selected
// and printed.
package limitrange

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/errorlimit"
)

// Strategy holds the rules for LimitRanges.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	errorlimit.Strategy
}

var (
	_ rest.RESTCreateStrategy = Strategy{}
	_ rest.RESTUpdateStrategy = Strategy{}
	_ rest.RESTDeleteStrategy = Strategy{}
)

// NewStrategy returns the rules for LimitRanges.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

// NamespaceScoped is true.
func (Strategy) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is true: a PUT creates a LimitRange that is not there.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return true }

// AllowUnconditionalUpdate is true: an update needs no resourceVersion.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// PrepareForCreate names a LimitRange that comes without a name, as core/v1
// does.
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	lr := obj.(*tenancy.LimitRange)
	if lr.Name == "" {
		lr.Name = string(uuid.NewUUID())
	}
}

// PrepareForUpdate keeps nothing: a LimitRange has no status.
func (Strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Validate checks a new LimitRange.
func (Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateLimitRange(obj.(*tenancy.LimitRange))
}

// ValidateUpdate checks an update.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateLimitRangeUpdate(obj.(*tenancy.LimitRange), old.(*tenancy.LimitRange))
}

// Canonicalize changes nothing: defaulting has filled in what is missing.
func (Strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate warns of nothing.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate warns of nothing.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetAttrs returns what a LimitRange can be selected by.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	lr, ok := obj.(*tenancy.LimitRange)
	if !ok {
		return nil, nil, fmt.Errorf("select a limit range: got %T", obj)
	}
	return lr.Labels, generic.ObjectMetaFieldsSet(&lr.ObjectMeta, true), nil
}

// Match returns the predicate that selects LimitRanges by label and field.
func Match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs}
}
