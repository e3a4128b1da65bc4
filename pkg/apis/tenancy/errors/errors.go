// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package errors has the API errors that more than one package returns.
package errors

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// NewNamespaceTerminating returns the error for the create of an object in a
// Namespace that is being terminated: that of Kubernetes' NamespaceLifecycle
// admission plugin. The garbage collector and controllers recognize it by its
// cause, not by its text.
func NewNamespaceTerminating(resource schema.GroupResource, namespace, name string) *apierrors.StatusError {
	err := apierrors.NewForbidden(resource, name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    v1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field:   "metadata.namespace",
	})
	return err
}
