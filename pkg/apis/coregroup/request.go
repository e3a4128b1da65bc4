// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// Requested reports whether the request of the context is for a shared resource in the
// core group.
func Requested(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && info.IsResourceRequest && info.APIGroup == GroupName && Shared(info.Resource)
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
