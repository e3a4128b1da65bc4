// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

var errNoRights = apierrors.NewBadRequest("the server has no role bindings")

// newRefused returns the error of a Namespace whose content cannot be created: Forbidden,
// or the original code if that is not about what the content is.
func newRefused(ns *tenancy.Namespace, origin string, err error) error {
	reason := fmt.Errorf("%s cannot be applied: %w", origin, err)
	var original apierrors.APIStatus
	if !errors.As(err, &original) {
		return apierrors.NewInternalError(reason)
	}
	status := original.Status()
	if status.Code < http.StatusInternalServerError && status.Code != http.StatusTooManyRequests {
		return apierrors.NewForbidden(tenancy.Resource("namespaces"), ns.Name, reason)
	}
	status.Message = reason.Error()
	return &apierrors.StatusError{ErrStatus: status}
}
