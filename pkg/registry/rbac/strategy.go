// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/standard"
)

// strategy has the rules by which objects of one kind are written. The four kinds
// differ in their validation only.
type strategy[T runtime.Object] struct {
	standard.Strategy
	namespaced     bool
	validate       func(obj T) field.ErrorList
	validateUpdate func(obj, old T) field.ErrorList
}

type writeStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

var _ writeStrategy = strategy[runtime.Object]{}

// NamespaceScoped implements rest.RESTCreateStrategy.
func (s strategy[T]) NamespaceScoped() bool { return s.namespaced }

// AllowCreateOnUpdate is true: a PUT creates an object that does not exist.
func (strategy[T]) AllowCreateOnUpdate(context.Context) bool { return true }

// Validate implements rest.RESTCreateStrategy.
func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.validate(obj.(T))
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.validateUpdate(obj.(T), old.(T))
}
