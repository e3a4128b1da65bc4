// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectinfo corrects the errors of updates and patches that the library
// reports as server errors although the request is invalid.
package objectinfo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/requestlimits"
)

// BadRequestOnInvalidPatch returns info with BadRequest in place of errors that
// have no status code. The library answers 500 to a strategic merge patch that
// does not fit the object, and to a resourceVersion that is not a number. Such an
// error can only be due to the request: before info makes the updated object,
// the server has done nothing but read the current one.
func BadRequestOnInvalidPatch(info rest.UpdatedObjectInfo) rest.UpdatedObjectInfo {
	return badRequestInfo{info}
}

type badRequestInfo struct{ rest.UpdatedObjectInfo }

type strategicKey struct{}

// WithStrategicMergePatch marks a request as a strategic merge patch, which takes
// longer than its size says where the object to update has long lists.
// BadRequestOnInvalidPatch refuses it then.
func WithStrategicMergePatch(ctx context.Context) context.Context {
	return context.WithValue(ctx, strategicKey{}, true)
}

// UpdatedObject returns the object to store.
func (i badRequestInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if ctx.Value(strategicKey{}) != nil {
		if err := requestlimits.CheckMergeTarget(old); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	updated, err := i.apply(ctx, old)
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
			return nil, apierrors.NewBadRequest(field.Invalid(field.NewPath("metadata", "resourceVersion"), version, "must be a resourceVersion that the server has returned").Error())
		}
	}
	return updated, nil
}

// apply returns the object that the request asks for. The library compares the
// keys of list elements in a strategic merge patch without looking at their type
// and panics when they are objects or lists (kubernetes#127056). No other values
// come from the request at this point, so that is the client's mistake.
func (i badRequestInfo) apply(ctx context.Context, old runtime.Object) (_ runtime.Object, err error) {
	defer func() {
		switch fault := recover(); {
		case fault == nil:
		case strings.HasPrefix(fmt.Sprint(fault), "runtime error: comparing uncomparable type"):
			err = apierrors.NewBadRequest("a patch must identify the elements of a list by text or numbers, not by objects or lists")
		default:
			panic(fault)
		}
	}()
	return i.UpdatedObjectInfo.UpdatedObject(ctx, old)
}
