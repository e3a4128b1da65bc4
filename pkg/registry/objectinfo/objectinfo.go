// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectinfo corrects the errors of updates and patches that the library
// reports as server errors although the request is invalid.
package objectinfo

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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

type patchTypeKey struct{}

// WithPatchType returns the context of a patch of a type. Those of two types are merged
// into an object that then passes no decoder, which would check its size. A strategic
// merge patch also takes longer than its size says where the object has long lists.
// BadRequestOnInvalidPatch refuses both.
func WithPatchType(ctx context.Context, patchType types.PatchType) context.Context {
	return context.WithValue(ctx, patchTypeKey{}, patchType)
}

// UpdatedObject returns the object to store.
func (i badRequestInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	patchType, _ := ctx.Value(patchTypeKey{}).(types.PatchType)
	if patchType == types.StrategicMergePatchType {
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
	if patchType == types.StrategicMergePatchType || patchType == types.ApplyYAMLPatchType {
		if err := requestlimits.CheckObject(updated); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
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

// apply returns the object that the request asks for. The libraries that apply patches
// panic at some values of the wrong type, and at some that are missing
// (kubernetes#127056). They get no other values than those of the patch and the object,
// so that is the client's mistake.
func (i badRequestInfo) apply(ctx context.Context, old runtime.Object) (_ runtime.Object, err error) {
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if !panickedInPatch() {
			panic(fault)
		}
		err = apierrors.NewBadRequest("the patch cannot be applied: a value in it is missing, or is null, an object or a list where that is not possible")
	}()
	return i.UpdatedObjectInfo.UpdatedObject(ctx, old)
}

// patchLibraries are the packages that apply patches.
var patchLibraries = []string{"k8s.io/apimachinery/pkg/util/strategicpatch.", "gopkg.in/evanphx/json-patch"}

// panickedInPatch reports whether the function that is called because of a panic was
// deferred by a caller of a library that applies patches.
func panickedInPatch() bool {
	callers := make([]uintptr, 32)
	frames := goruntime.CallersFrames(callers[:goruntime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if slices.ContainsFunc(patchLibraries, func(library string) bool { return strings.HasPrefix(frame.Function, library) }) {
			return true
		}
		if !more {
			return false
		}
	}
}
