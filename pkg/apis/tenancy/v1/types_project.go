// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProjectAccess is the highest access of a user to a Namespace.
// +enum
type ProjectAccess string

const (
	// ProjectAdmin is the access of users with the ClusterRole cluster-admin or admin, and
	// of members of the group system:masters.
	ProjectAdmin ProjectAccess = "admin"
	// ProjectEdit is the access of users with the ClusterRole edit.
	ProjectEdit ProjectAccess = "edit"
	// ProjectView is the access of users with the ClusterRole view.
	ProjectView ProjectAccess = "view"
	// ProjectCustom is any other access.
	ProjectCustom ProjectAccess = "custom"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list,watch
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Project is a Namespace as the user of the request sees it. Each user has a Project
// for each Namespace that the user may get. Projects are not stored and cannot be
// written: create, change or delete the Namespace.
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata: that of the Namespace, without managedFields.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec has the finalizers of the Namespace.
	// +optional
	Spec ProjectSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// Status is the state of the Namespace, and the access of the user.
	// +optional
	Status ProjectStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// ProjectSpec has the finalizers of a Namespace.
type ProjectSpec struct {
	// Finalizers lists the agents that must finalize the Namespace.
	// +optional
	// +listType=atomic
	Finalizers []FinalizerName `json:"finalizers,omitempty" protobuf:"bytes,1,rep,name=finalizers,casttype=FinalizerName"`
}

// ProjectStatus is the state of a Namespace, and the access of the user.
type ProjectStatus struct {
	// Phase is Active until the Namespace is deleted, and then Terminating.
	// +optional
	Phase NamespacePhase `json:"phase,omitempty" protobuf:"bytes,1,opt,name=phase,casttype=NamespacePhase"`

	// Access is the highest access of the user, by RoleBindings in the Namespace and by
	// ClusterRoleBindings.
	// +optional
	Access ProjectAccess `json:"access,omitempty" protobuf:"bytes,2,opt,name=access,casttype=ProjectAccess"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProjectList is a list of Projects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Items are the Projects.
	Items []Project `json:"items" protobuf:"bytes,2,rep,name=items"`
}
