// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package errors has the API errors that more than one package returns or distinguishes.
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

// IsObjectNotFound reports whether an error means that the object of a request does not
// exist. Unlike apierrors.IsNotFound, it is false for a 404 without a Status, which is not
// from our server: while there is no APIService, kube-apiserver answers so to everything.
func IsObjectNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}
