// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// Requested reports whether the request of the context is for a shared resource in the
// core group.
func Requested(ctx context.Context) bool {
	return requestedIn(ctx, GroupName)
}

// requestedIn reports whether the request is for a shared resource in one of the groups.
func requestedIn(ctx context.Context, groups ...string) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && info.IsResourceRequest && slices.Contains(groups, info.APIGroup) && Shared(info.Resource)
}

// ResetFields returns the fields at the paths in both groups, for
// rest.ResetFieldsStrategy.
func ResetFields(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet(paths...)
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1.SchemeGroupVersion.String()):     set,
		fieldpath.APIVersion(corev1.SchemeGroupVersion.String()): set,
	}
}

// UpdatedObjectInfo returns info for a shared resource in either group, which returns
// objects with managed fields in the version of ours: a client may have sent those that
// it got through the core group.
//
// It sees the current object of a request for the core group with managed fields in the
// version of core/v1. Server-side apply compares values as they are written for managers
// of its own version: an apply of 1000m to a CPU of 1 is a conflict. For those of another
// version it converts them first, and sees no change.
func UpdatedObjectInfo(info rest.UpdatedObjectInfo) rest.UpdatedObjectInfo {
	return updatedObjectInfo{info}
}

type updatedObjectInfo struct{ rest.UpdatedObjectInfo }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i updatedObjectInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if object, ok := old.(metav1.Object); ok && Requested(ctx) {
		stored := object.GetManagedFields()
		object.SetManagedFields(coreManagedFields(stored))
		defer object.SetManagedFields(stored)
	}
	updated, err := i.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if object, ok := updated.(metav1.Object); ok && err == nil && requestedIn(ctx, GroupName, tenancy.GroupName) {
		object.SetManagedFields(OwnManagedFields(object.GetManagedFields()))
	}
	return updated, err
}

// ConvertManagedFields replaces the managed fields of the items, in a request for the core
// group, by those in the version of core/v1. Such a list is converted without a copy of
// its items. The items must be the caller's own, but may share what they point to.
func ConvertManagedFields(ctx context.Context, list runtime.Object) error {
	if !Requested(ctx) {
		return nil
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		object.SetManagedFields(coreManagedFields(object.GetManagedFields()))
		return nil
	})
}
