// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// withContent returns the context and the validation of a write that may create a
// Namespace, so that it is created with its content.
func (r *REST) withContent(ctx context.Context, createValidation rest.ValidateObjectFunc, dryRun bool) (context.Context, rest.ValidateObjectFunc) {
	if r.content == nil || dryRun {
		return ctx, createValidation
	}
	return r.content.Begin(ctx, createValidation)
}

// dryRunContent creates the content of a Namespace that was created in a dry run, in a
// dry run.
func (r *REST) dryRunContent(ctx context.Context, obj runtime.Object) error {
	ns, ok := obj.(*tenancy.Namespace)
	switch {
	case !ok:
		return apierrors.NewInternalError(fmt.Errorf("create a namespace: got %T", obj))
	case r.content == nil:
		return nil
	}
	return r.content.DryRun(ctx, ns)
}
