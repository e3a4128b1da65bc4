// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizerName names an agent that has to agree before a Namespace goes.
type FinalizerName string

// FinalizerKubernetes is the finalizer of the namespace controller. Every
// Namespace is created with it.
const FinalizerKubernetes FinalizerName = "kubernetes"

// NamespacePhase is where a Namespace stands in its life.
// +enum
type NamespacePhase string

const (
	// NamespaceActive means that content can be created in the Namespace.
	NamespaceActive NamespacePhase = "Active"
	// NamespaceTerminating means that the Namespace is being deleted: its
	// content is purged and none can be created.
	NamespaceTerminating NamespacePhase = "Terminating"
)

// NamespaceTerminatingCause is the cause in the status of a request that was
// refused because its Namespace is being terminated.
const NamespaceTerminatingCause metav1.CauseType = corev1.NamespaceTerminatingCause

// NamespaceNotEmptyCause is the cause in the Conflict of a request that would
// have removed a Namespace with content in it. It sets that apart from the
// Conflicts that are over after another read.
const NamespaceNotEmptyCause metav1.CauseType = "NamespaceNotEmpty"

// NamespaceProtectedCause is the cause in the Conflict of a request to delete a
// Namespace that has spec.deletionProtection.
const NamespaceProtectedCause metav1.CauseType = "NamespaceProtected"

// NamespaceConditionType names a condition of a Namespace.
type NamespaceConditionType string

// The conditions that the namespace controller keeps on a terminating
// Namespace. Their names, and the reasons in them, are those of core/v1.
const (
	// NamespaceDeletionDiscoveryFailure tells whether the kinds to purge could
	// be discovered.
	NamespaceDeletionDiscoveryFailure NamespaceConditionType = "NamespaceDeletionDiscoveryFailure"
	// NamespaceDeletionGVParsingFailure tells whether the group versions that
	// discovery named could be parsed.
	NamespaceDeletionGVParsingFailure NamespaceConditionType = "NamespaceDeletionGroupVersionParsingFailure"
	// NamespaceDeletionContentFailure tells whether content could be deleted.
	NamespaceDeletionContentFailure NamespaceConditionType = "NamespaceDeletionContentFailure"
	// NamespaceContentRemaining tells whether content is left.
	NamespaceContentRemaining NamespaceConditionType = "NamespaceContentRemaining"
	// NamespaceFinalizersRemaining tells whether content that is left has
	// finalizers, and which.
	NamespaceFinalizersRemaining NamespaceConditionType = "NamespaceFinalizersRemaining"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:skipVerbs=deleteCollection
// +genclient:method=Finalize,verb=update,subresource=finalize
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"
// +k8s:supportsSubresource="/finalize"

// Namespace partitions content: LimitRanges and Pods are created in a
// Namespace, only while it is Active, and go with it.
type Namespace struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name is a DNS label; the label
	// kubernetes.io/metadata.name always equals it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is what is wanted of the Namespace.
	// +optional
	Spec NamespaceSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// Status is what was last observed of the Namespace. It is written by the
	// server and the namespace controller.
	// +optional
	Status NamespaceStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// NamespaceSpec is what is wanted of a Namespace.
type NamespaceSpec struct {
	// Finalizers names the agents that hold the Namespace: it is removed from
	// storage only when it is deleted and this list is empty. It always starts
	// out with "kubernetes", the namespace controller, which purges the
	// content. The list changes only through the finalize subresource.
	// +optional
	// +listType=atomic
	Finalizers []FinalizerName `json:"finalizers,omitempty" protobuf:"bytes,1,rep,name=finalizers,casttype=FinalizerName"`

	// DeletionProtection has every DELETE of the Namespace refused until it is
	// set to false. It can't be set on a Namespace that is being deleted.
	// +optional
	DeletionProtection bool `json:"deletionProtection,omitempty" protobuf:"varint,1000,opt,name=deletionProtection"`
}

// NamespaceStatus is what was last observed of a Namespace.
type NamespaceStatus struct {
	// Phase is Active until the Namespace is deleted, and Terminating from then
	// on.
	// +optional
	Phase NamespacePhase `json:"phase,omitempty" protobuf:"bytes,1,opt,name=phase,casttype=NamespacePhase"`

	// Conditions tell how the termination of the Namespace goes and what holds
	// it up.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []NamespaceCondition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,rep,name=conditions"`

	// Termination tells what a Terminating Namespace waits for. It is not set
	// while there is nothing to tell.
	// +optional
	Termination *NamespaceTermination `json:"termination,omitempty" protobuf:"bytes,1000,opt,name=termination"`
}

// NamespaceTermination tells what a Terminating Namespace waits for, as the
// namespace controller last read it from storage. Its size is bounded: lists
// hold the first few of what there is.
type NamespaceTermination struct {
	// LastProgressTime is when something last moved, as far as the namespace
	// controller could see: an object or a finalizer went, or content was asked
	// to go. Nothing has moved since.
	LastProgressTime metav1.Time `json:"lastProgressTime" protobuf:"bytes,1,opt,name=lastProgressTime"`

	// SpecFinalizers are the finalizers in the spec of the Namespace that are
	// still held, up to twenty of them. "kubernetes" stays until no content is
	// left. The server keeps this list up to date.
	// +optional
	// +listType=atomic
	SpecFinalizers []FinalizerName `json:"specFinalizers,omitempty" protobuf:"bytes,2,rep,name=specFinalizers,casttype=FinalizerName"`

	// MetadataFinalizers are the finalizers in the metadata of the Namespace
	// that are still held, up to twenty of them. The server keeps this list up
	// to date.
	// +optional
	// +listType=atomic
	MetadataFinalizers []string `json:"metadataFinalizers,omitempty" protobuf:"bytes,3,rep,name=metadataFinalizers"`

	// Remaining tells what is left, by resource, up to ten of them. Resources
	// with an error come first, then Pods, which go before all else.
	// +optional
	// +listType=atomic
	Remaining []RemainingResource `json:"remaining,omitempty" protobuf:"bytes,4,rep,name=remaining"`

	// OmittedResources is the number of resources that have something left, or
	// an error, and are not in the list of what is remaining.
	// +optional
	OmittedResources int32 `json:"omittedResources,omitempty" protobuf:"varint,5,opt,name=omittedResources"`

	// Undiscovered are the API groups whose resources could not be discovered,
	// up to ten of them. They may have content that nobody has seen, so the
	// Namespace waits for them.
	// +optional
	// +listType=atomic
	Undiscovered []UndiscoveredGroup `json:"undiscovered,omitempty" protobuf:"bytes,6,rep,name=undiscovered"`

	// LastError is why the last attempt to let go of the Namespace, after all
	// content that could be found had gone, has failed.
	// +optional
	LastError string `json:"lastError,omitempty" protobuf:"bytes,7,opt,name=lastError"`
}

// RemainingResource is what is left of one resource in a Terminating Namespace.
type RemainingResource struct {
	// Group is the API group of the resource, empty for the core group.
	// +optional
	Group string `json:"group,omitempty" protobuf:"bytes,1,opt,name=group"`

	// Resource is the name of the resource, such as "pods".
	Resource string `json:"resource" protobuf:"bytes,2,opt,name=resource"`

	// Count is the number of objects that are left. It is not set when not all
	// of them could be listed.
	// +optional
	Count *int64 `json:"count,omitempty" protobuf:"varint,3,opt,name=count"`

	// Objects are up to five of the objects that are left: first those that
	// were asked to go, in the order of their deletionTimestamp.
	// +optional
	// +listType=atomic
	Objects []RemainingObject `json:"objects,omitempty" protobuf:"bytes,4,rep,name=objects"`

	// LastError is what went wrong in the last attempt to list and delete the
	// objects.
	// +optional
	LastError string `json:"lastError,omitempty" protobuf:"bytes,5,opt,name=lastError"`
}

// RemainingObject is an object that is left in a Terminating Namespace.
type RemainingObject struct {
	// Name of the object.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// Finalizers of the object, up to five of them.
	// +optional
	// +listType=atomic
	Finalizers []string `json:"finalizers,omitempty" protobuf:"bytes,2,rep,name=finalizers"`

	// DeletionTimestamp is that of the object: when it was deleted or, for a
	// Pod with a grace period, when that ends. It is not set for an object that
	// has not been asked to go.
	// +optional
	DeletionTimestamp *metav1.Time `json:"deletionTimestamp,omitempty" protobuf:"bytes,3,opt,name=deletionTimestamp"`

	// DeletionGracePeriodSeconds is that of the object: how long after the
	// deletion its deletionTimestamp is.
	// +optional
	DeletionGracePeriodSeconds *int64 `json:"deletionGracePeriodSeconds,omitempty" protobuf:"varint,4,opt,name=deletionGracePeriodSeconds"`
}

// UndiscoveredGroup is an API group whose resources could not be discovered.
type UndiscoveredGroup struct {
	// GroupVersion is the group and version, such as "example.com/v1". It is
	// empty when it is not known which groups there are.
	// +optional
	GroupVersion string `json:"groupVersion,omitempty" protobuf:"bytes,1,opt,name=groupVersion"`

	// LastError is what went wrong in the last attempt to discover it.
	LastError string `json:"lastError" protobuf:"bytes,2,opt,name=lastError"`
}

// NamespaceCondition is one observation about the termination of a Namespace.
type NamespaceCondition struct {
	// Type of the condition.
	Type NamespaceConditionType `json:"type" protobuf:"bytes,1,opt,name=type,casttype=NamespaceConditionType"`
	// Status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status" protobuf:"bytes,2,opt,name=status,casttype=k8s.io/api/core/v1.ConditionStatus"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty" protobuf:"bytes,4,opt,name=lastTransitionTime"`
	// Reason for the status, one word in CamelCase.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,5,opt,name=reason"`
	// Message that explains the status to a person.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,6,opt,name=message"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespaceList is a list of Namespaces.
type NamespaceList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Items are the Namespaces.
	Items []Namespace `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LimitRange gives defaults and bounds for what the Pods of its Namespace
// request. Several in one Namespace apply in order of their names.
type LimitRange struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec defines the limits that are enforced.
	// +optional
	Spec corev1.LimitRangeSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LimitRangeList is a list of LimitRanges.
type LimitRangeList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Items are the LimitRanges.
	Items []LimitRange `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// +genclient
// +genclient:method=UpdateEphemeralContainers,verb=update,subresource=ephemeralcontainers
// +genclient:method=UpdateResize,verb=update,subresource=resize
// +genclient:method=Bind,verb=create,subresource=binding,input=github.com/borough-io/borough/pkg/apis/tenancy/v1.Binding,result=k8s.io/apimachinery/pkg/apis/meta/v1.Status
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"
// +k8s:supportsSubresource="/ephemeralcontainers"
// +k8s:supportsSubresource="/resize"

// Pod is a group of containers that run together. Its spec and status are
// those of a core/v1 Pod.
type Pod struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is what is wanted of the Pod.
	// +optional
	Spec corev1.PodSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// Status is what was last observed of the Pod, written by the server and by
	// whoever runs the Pod.
	// +optional
	Status corev1.PodStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodList is a list of Pods.
type PodList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Items are the Pods.
	Items []Pod `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Binding assigns a Pod to a node. It is sent to the binding subresource of
// the Pod and is not stored.
type Binding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. A UID or resourceVersion, where given, must
	// be that of the Pod.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Target is the node to assign the Pod to.
	Target corev1.ObjectReference `json:"target" protobuf:"bytes,2,opt,name=target"`
}
