// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// KindStrategy is the strategy of a kind whose internal type is T: Strategy with the
// scope and the validation of the kind. The strategy of a kind embeds it, as Strategy.
type KindStrategy[T runtime.Object] struct {
	Strategy
	namespaced     bool
	validate       func(obj T) field.ErrorList
	validateUpdate func(obj, old T) field.ErrorList
}

var (
	_ rest.RESTCreateStrategy = KindStrategy[runtime.Object]{}
	_ rest.RESTUpdateStrategy = KindStrategy[runtime.Object]{}
	_ rest.RESTDeleteStrategy = KindStrategy[runtime.Object]{}
)

// NewNamespacedStrategy returns the strategy of a namespaced kind.
func NewNamespacedStrategy[T runtime.Object](typer runtime.ObjectTyper, validate func(obj T) field.ErrorList, validateUpdate func(obj, old T) field.ErrorList) KindStrategy[T] {
	return KindStrategy[T]{NewStrategy(typer), true, validate, validateUpdate}
}

// NewClusterScopedStrategy returns the strategy of a cluster-scoped kind.
func NewClusterScopedStrategy[T runtime.Object](typer runtime.ObjectTyper, validate func(obj T) field.ErrorList, validateUpdate func(obj, old T) field.ErrorList) KindStrategy[T] {
	return KindStrategy[T]{NewStrategy(typer), false, validate, validateUpdate}
}

// NamespaceScoped reports whether the kind is namespaced.
func (s KindStrategy[T]) NamespaceScoped() bool { return s.namespaced }

// AllowCreateOnUpdate is true: a PUT creates an object that does not exist.
func (KindStrategy[T]) AllowCreateOnUpdate(context.Context) bool { return true }

// Validate checks a new object.
func (s KindStrategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.validate(obj.(T))
}

// ValidateUpdate checks an update.
func (s KindStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.validateUpdate(obj.(T), old.(T))
}
