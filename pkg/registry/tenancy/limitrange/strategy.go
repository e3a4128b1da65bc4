// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

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

// strategy holds the rules for LimitRanges.
type strategy struct{ standard.Strategy }

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

// NamespaceScoped is true.
func (strategy) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is true: a PUT creates a LimitRange that is not there.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return true }

// PrepareForCreate names a LimitRange that comes without a name, as core/v1
// does.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	lr := obj.(*tenancy.LimitRange)
	if lr.Name == "" {
		lr.Name = string(uuid.NewUUID())
	}
}

// Validate checks a new LimitRange.
func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateLimitRange(obj.(*tenancy.LimitRange))
}

// ValidateUpdate checks an update.
func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateLimitRangeUpdate(obj.(*tenancy.LimitRange), old.(*tenancy.LimitRange))
}
