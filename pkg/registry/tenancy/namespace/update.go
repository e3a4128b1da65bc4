// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/deletion"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// shouldDeleteDuringUpdate reports whether an update leaves a Terminating
// Namespace without finalizers, so that it is removed instead of updated.
func shouldDeleteDuringUpdate(ctx context.Context, key string, obj, existing runtime.Object) bool {
	return len(obj.(*tenancy.Namespace).Spec.Finalizers) == 0 &&
		genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
}

// updateOrRemove writes what objInfo makes of a Namespace. If nothing
// holds a Terminating Namespace after the update, it is removed. While it has content,
// the update is only written, and the Namespace is removed with the last content.
func updateOrRemove(ctx context.Context, store *genericregistry.Store, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	objInfo = standard.UpdatedObjectInfo(objInfo)
	obj, created, err := deletion.Update(ctx, store, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	if !apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause) {
		return obj, created, err
	}
	keeping := *store
	keeping.ShouldDeleteDuringUpdate = func(context.Context, string, runtime.Object, runtime.Object) bool { return false }
	return keeping.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}
