// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// ValidateNamespaceRequest checks what only a NamespaceRequest has. All else is
// checked in the Namespace that is made of it.
func ValidateNamespaceRequest(request *tenancy.NamespaceRequest) field.ErrorList {
	errs := ValidateNotRequested(&request.ObjectMeta)
	path := field.NewPath("metadata")
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"resourceVersion", request.ResourceVersion != ""},
		{"finalizers", len(request.Finalizers) > 0},
		{"ownerReferences", len(request.OwnerReferences) > 0},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.field), "may not be set in a namespace request"))
		}
	}
	for _, name := range []struct{ field, value string }{{"name", request.Name}, {"generateName", request.GenerateName}} {
		if strings.HasPrefix(name.value, reservedPrefix) {
			errs = append(errs, field.Invalid(path.Child(name.field), name.value, fmt.Sprintf("names that start with %q are reserved for the system", reservedPrefix)))
		}
	}
	size := 0
	for _, pairs := range []map[string]string{request.Labels, request.Annotations} {
		for key, value := range pairs {
			size += len(key) + len(value)
		}
	}
	if size > maxRequestMetadata {
		errs = append(errs, field.Invalid(path, "", fmt.Sprintf("labels and annotations have %d bytes together, and can have at most %d in a namespace request", size, maxRequestMetadata)))
	}
	return errs
}

// maxRequestMetadata is the maximum size of the labels and annotations of a
// NamespaceRequest, in bytes. The requester decides who sees the Namespace in lists.
const maxRequestMetadata = 16 << 10

// reservedPrefix is the prefix of names that, by the conventions of Kubernetes, users
// do not give to Namespaces.
const reservedPrefix = "kube-"

var requesterPath = field.NewPath("metadata", "annotations").Key(tenancy.RequesterAnnotation)

// ValidateNotRequested checks that the metadata in a request does not name the user
// who has requested a Namespace.
func ValidateNotRequested(meta *metav1.ObjectMeta) field.ErrorList {
	if _, has := meta.Annotations[tenancy.RequesterAnnotation]; has {
		return field.ErrorList{field.Forbidden(requesterPath, "is set by the server when the namespace is created by a namespacerequest")}
	}
	return nil
}

// validateRequesterUpdate checks that an update does not change the user who has
// requested a Namespace, which counts for the limit of the user.
func validateRequesterUpdate(newNS, oldNS *tenancy.Namespace) field.ErrorList {
	newUser, has := newNS.Annotations[tenancy.RequesterAnnotation]
	if oldUser, had := oldNS.Annotations[tenancy.RequesterAnnotation]; has == had && newUser == oldUser {
		return nil
	}
	return field.ErrorList{field.Invalid(requesterPath, newUser, "field is immutable")}
}
