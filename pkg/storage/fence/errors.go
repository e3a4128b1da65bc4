// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// newNotEmpty returns the error for a Namespace that still contains objects of the
// resources.
func newNotEmpty(namespaces schema.GroupResource, namespace string, left []schema.GroupResource) error {
	resources := make([]string, len(left))
	for i, r := range left {
		resources[i] = r.String()
	}
	message := "there is content left in it: " + strings.Join(resources, ", ")
	err := apierrors.NewConflict(namespaces, namespace, errors.New(message))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    v1.NamespaceNotEmptyCause,
		Message: message,
	})
	return err
}
