// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package errors

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// NewStorageFull returns the error for a write for which etcd has no space. It has
// no Retry-After, so clients do not retry: space becomes free only when an
// administrator frees it.
func NewStorageFull(cause error) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusInsufficientStorage,
		Reason: v1.StorageFullReason,
		Message: fmt.Sprintf("etcd is full, so it accepts only deletes (%v): delete objects that are not needed, "+
			"then have an administrator free their space, as described in docs/operations.md, \"When etcd is full\"", cause),
	}}
}

// IsStorageFull reports whether the error is one of NewStorageFull.
func IsStorageFull(err error) bool { return apierrors.ReasonForError(err) == v1.StorageFullReason }
