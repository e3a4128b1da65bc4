// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package errorlimit bounds the errors that the answer to an invalid object
// names.
package errorlimit

import (
	"context"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/requestlimits"
)

// Strategy is embedded in the strategy of each resource. The library lets
// declarative validation have the last word on the errors, its own about the
// metadata included, before it compares them with each other and joins their
// texts. Both take time that grows with the square of their number.
type Strategy struct{}

var _ rest.DeclarativeValidationStrategy = Strategy{}

// ValidateDeclaratively returns the first requestlimits.MaxErrors of the errors.
func (Strategy) ValidateDeclaratively(_ context.Context, _, _ runtime.Object, errs field.ErrorList, _ operation.Type, _ rest.DeclarativeValidationConfig) field.ErrorList {
	return requestlimits.LimitErrors(errs)
}

// DeclarativeValidationConfig is empty: the kinds have no validation of this sort.
func (Strategy) DeclarativeValidationConfig(context.Context, runtime.Object, runtime.Object) rest.DeclarativeValidationConfig {
	return rest.DeclarativeValidationConfig{}
}
