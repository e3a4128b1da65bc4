// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectinfo tells apart, in updates and patches, what is wrong with the
// request from what is wrong with the server.
package objectinfo

import (
	"context"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Checked returns info with a 400 for what can't be made into an object. The
// library answers 500 to a strategic merge patch that does not fit the object,
// and to a resourceVersion that is no number: errors without a code that come
// from the request alone, since nothing has been read or written by then but
// the object to update.
func Checked(info rest.UpdatedObjectInfo) rest.UpdatedObjectInfo {
	return checked{info}
}

type checked struct{ rest.UpdatedObjectInfo }

// UpdatedObject returns the object to store.
func (c checked) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	updated, err := c.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		if status := apierrors.APIStatus(nil); ctx.Err() != nil || errors.As(err, &status) {
			return nil, err
		}
		return nil, apierrors.NewBadRequest(err.Error())
	}
	accessor, err := meta.Accessor(updated)
	if err != nil {
		return nil, err
	}
	if version := accessor.GetResourceVersion(); version != "" {
		if _, err := strconv.ParseUint(version, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest(field.Invalid(field.NewPath("metadata", "resourceVersion"), version, "must be a number that the server has given").Error())
		}
	}
	return updated, nil
}
