// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review serves create-only kinds whose response has the answer: it is the object
// that the client creates, with the answer in its status, and nothing is stored.
package review

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// REST serves one kind.
type REST struct {
	// Singular is the singular name of the resource.
	Singular string
	// Namespaced is whether the objects are in a Namespace.
	Namespaced bool
	// NewFunc returns an empty object.
	NewFunc func() runtime.Object
	// Validate returns an error if the object is not valid, and otherwise the function
	// that answers it, which is called if admission allows the object.
	Validate func(ctx context.Context, obj runtime.Object) (AnswerFunc, error)
}

// AnswerFunc returns the object with the answer.
type AnswerFunc func(ctx context.Context) (runtime.Object, error)

var (
	_ rest.Creater              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return r.NewFunc() }

// Destroy implements rest.Storage. Nothing is stored.
func (r *REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return r.Namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return r.Singular }

// Create returns the object with the answer. It returns the error of Validate, of
// admission, or of the answer.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	answer, err := r.Validate(ctx, obj)
	if err != nil {
		return nil, err
	}
	if createValidation != nil {
		if err := createValidation(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return answer(ctx)
}
