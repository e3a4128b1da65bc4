// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limitrange holds the rules by which LimitRanges are written and printed.
package limitrange

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// Strategy holds the rules for LimitRanges.
type Strategy struct{ standard.Strategy }

var (
	_ rest.RESTCreateStrategy = Strategy{}
	_ rest.RESTUpdateStrategy = Strategy{}
	_ rest.RESTDeleteStrategy = Strategy{}
)

// NewStrategy returns the rules for LimitRanges.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{standard.NewStrategy(typer)}
}

// NamespaceScoped is true.
func (Strategy) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is true: a PUT creates a LimitRange that is not there.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return true }

// PrepareForCreate names a LimitRange that comes without a name, as core/v1
// does.
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	lr := obj.(*tenancy.LimitRange)
	if lr.Name == "" {
		lr.Name = string(uuid.NewUUID())
	}
}

// Validate checks a new LimitRange.
func (Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateLimitRange(obj.(*tenancy.LimitRange))
}

// ValidateUpdate checks an update.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateLimitRangeUpdate(obj.(*tenancy.LimitRange), old.(*tenancy.LimitRange))
}
