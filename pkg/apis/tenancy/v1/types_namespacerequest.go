// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RequesterAnnotation is the key of the annotation of a Namespace whose value is the
// name of the user who created it with a NamespaceRequest. No other request can set,
// change or remove it.
const RequesterAnnotation = GroupName + "/requester"

// NamespaceLimitCause is the cause in the 403 response to a NamespaceRequest if the user
// already has the maximum number of requested Namespaces.
const NamespaceLimitCause metav1.CauseType = "NamespaceLimitReached"

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespaceRequest creates a Namespace for the user who sends it. Creating a
// NamespaceRequest creates the Namespace, and in it a RoleBinding that binds the
// ClusterRole admin to the user, in one transaction; the NamespaceRequest itself is
// not stored. It requires the verb create on namespacerequests, and no right to
// create Namespaces or RoleBindings. Only a standalone server serves it.
type NamespaceRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The Namespace gets the name, which can be
	// generated, the labels and the annotations. Finalizers, owner references
	// and the resourceVersion must be empty.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Status is the result. It is set by the server.
	// +optional
	Status NamespaceRequestStatus `json:"status,omitempty" protobuf:"bytes,2,opt,name=status"`
}

// NamespaceRequestStatus is the result of a NamespaceRequest.
type NamespaceRequestStatus struct {
	// NamespaceUID is the metadata.uid of the Namespace that was created.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID,omitempty" protobuf:"bytes,1,opt,name=namespaceUID,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// RoleBinding is the name of the RoleBinding that was created in the Namespace.
	// +optional
	RoleBinding string `json:"roleBinding,omitempty" protobuf:"bytes,2,opt,name=roleBinding"`
}
