// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizerName identifies an agent that must finalize a Namespace before it is
// removed.
type FinalizerName string

// FinalizerKubernetes is the finalizer of borough-controller-manager. Every
// Namespace is created with it.
const FinalizerKubernetes FinalizerName = "kubernetes"

// NamespacePhase is the phase in the life cycle of a Namespace.
// +enum
type NamespacePhase string

const (
	// NamespaceActive means that content can be created in the Namespace.
	NamespaceActive NamespacePhase = "Active"
	// NamespaceTerminating means that the Namespace is being deleted: its content
	// is purged, and no content can be created in it.
	NamespaceTerminating NamespacePhase = "Terminating"
)

// NamespaceTerminatingCause is the cause in the status of a create that was
// rejected because its Namespace is being terminated.
const NamespaceTerminatingCause metav1.CauseType = corev1.NamespaceTerminatingCause

// NamespaceNotEmptyCause is the cause in the Conflict of a request that would
// have removed a Namespace that has content. It distinguishes this Conflict from
// one that a new read resolves.
const NamespaceNotEmptyCause metav1.CauseType = "NamespaceNotEmpty"

// StorageFullReason is the reason in the response, with the code 507, to a write for which
// etcd has no space. A client that retries it has to wait until an administrator has freed
// space.
const StorageFullReason metav1.StatusReason = "StorageFull"

// NamespaceProtectedCause is the cause in the Conflict of a request to delete a
// Namespace that has spec.deletionProtection.
const NamespaceProtectedCause metav1.CauseType = "NamespaceProtected"

// NamespaceConditionType is the type of a condition of a Namespace.
type NamespaceConditionType string

// The conditions that borough-controller-manager sets on a Terminating Namespace.
// Their types are those of core/v1, and so are their reasons except ContentUnknown.
const (
	// NamespaceDeletionDiscoveryFailure is True if some of the resources to purge
	// could not be discovered.
	NamespaceDeletionDiscoveryFailure NamespaceConditionType = "NamespaceDeletionDiscoveryFailure"
	// NamespaceDeletionGVParsingFailure is True if a group version in discovery
	// could not be parsed.
	NamespaceDeletionGVParsingFailure NamespaceConditionType = "NamespaceDeletionGroupVersionParsingFailure"
	// NamespaceDeletionContentFailure is True if some content could not be deleted.
	NamespaceDeletionContentFailure NamespaceConditionType = "NamespaceDeletionContentFailure"
	// NamespaceContentRemaining is True if content remains.
	NamespaceContentRemaining NamespaceConditionType = "NamespaceContentRemaining"
	// NamespaceFinalizersRemaining is True if content remains that has finalizers.
	// The message has the finalizers.
	NamespaceFinalizersRemaining NamespaceConditionType = "NamespaceFinalizersRemaining"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:skipVerbs=deleteCollection
// +genclient:method=Finalize,verb=update,subresource=finalize
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"
// +k8s:supportsSubresource="/finalize"

// Namespace is a scope for names: LimitRanges, ResourceQuotas and Pods exist in a
// Namespace. They can be created only while it is Active, and they are deleted with it.
type Namespace struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name is a DNS label; the label
	// kubernetes.io/metadata.name always equals it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec defines the desired state of the Namespace.
	// +optional
	Spec NamespaceSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// Status is the observed state of the Namespace, written by the server and by
	// borough-controller-manager.
	// +optional
	Status NamespaceStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// NamespaceSpec defines the desired state of a Namespace.
type NamespaceSpec struct {
	// Finalizers lists the agents that must finalize the Namespace. A deleted
	// Namespace is removed from storage when this list and metadata.finalizers are
	// empty and no content is left. Every Namespace is created with "kubernetes",
	// the finalizer of borough-controller-manager, which purges the content. Only
	// the finalize subresource changes the list.
	// +optional
	// +listType=atomic
	Finalizers []FinalizerName `json:"finalizers,omitempty" protobuf:"bytes,1,rep,name=finalizers,casttype=FinalizerName"`

	// DeletionProtection, if true, rejects every DELETE of the Namespace until it
	// is set to false. It cannot be set on a Namespace that is being deleted.
	// Defaults to false.
	// +optional
	DeletionProtection bool `json:"deletionProtection,omitempty" protobuf:"varint,1000,opt,name=deletionProtection"`
}

// NamespaceStatus is the observed state of a Namespace.
type NamespaceStatus struct {
	// Phase is Active until the Namespace is deleted, and then Terminating.
	// +optional
	Phase NamespacePhase `json:"phase,omitempty" protobuf:"bytes,1,opt,name=phase,casttype=NamespacePhase"`

	// Conditions describe the termination of the Namespace and what blocks it.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []NamespaceCondition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,rep,name=conditions"`

	// Termination lists what a Terminating Namespace waits for. It is not set if
	// there is nothing to report.
	// +optional
	Termination *NamespaceTermination `json:"termination,omitempty" protobuf:"bytes,1000,opt,name=termination"`
}

// NamespaceTermination lists what a Terminating Namespace waits for, as
// borough-controller-manager last read it from storage. Its size is bounded: lists
// have a maximum length.
type NamespaceTermination struct {
	// LastProgressTime is when borough-controller-manager last observed progress: an
	// object or a finalizer was removed, or content was marked for deletion.
	LastProgressTime metav1.Time `json:"lastProgressTime" protobuf:"bytes,1,opt,name=lastProgressTime"`

	// SpecFinalizers are the remaining finalizers in spec.finalizers, at most
	// twenty. "kubernetes" remains until no content is left. The server keeps this
	// list up to date.
	// +optional
	// +listType=atomic
	SpecFinalizers []FinalizerName `json:"specFinalizers,omitempty" protobuf:"bytes,2,rep,name=specFinalizers,casttype=FinalizerName"`

	// MetadataFinalizers are the remaining finalizers in metadata.finalizers, at
	// most twenty. The server keeps this list up to date.
	// +optional
	// +listType=atomic
	MetadataFinalizers []string `json:"metadataFinalizers,omitempty" protobuf:"bytes,3,rep,name=metadataFinalizers"`

	// Remaining is the content that remains, by resource, at most ten resources.
	// Resources with an error come first, then Pods.
	// +optional
	// +listType=atomic
	Remaining []RemainingResource `json:"remaining,omitempty" protobuf:"bytes,4,rep,name=remaining"`

	// OmittedResources is the number of resources with remaining objects or an
	// error that are not in the list remaining.
	// +optional
	OmittedResources int32 `json:"omittedResources,omitempty" protobuf:"varint,5,opt,name=omittedResources"`

	// Undiscovered are the API groups whose resources could not be discovered, at
	// most ten. The Namespace waits for them, because they may have content in it.
	// +optional
	// +listType=atomic
	Undiscovered []UndiscoveredGroup `json:"undiscovered,omitempty" protobuf:"bytes,6,rep,name=undiscovered"`

	// LastError is the error of the last attempt to finalize the Namespace after
	// all content had been deleted.
	// +optional
	LastError string `json:"lastError,omitempty" protobuf:"bytes,7,opt,name=lastError"`
}

// RemainingResource has the objects of one resource that remain in a Terminating
// Namespace.
type RemainingResource struct {
	// Group is the API group of the resource, empty for the core group.
	// +optional
	Group string `json:"group,omitempty" protobuf:"bytes,1,opt,name=group"`

	// Resource is the name of the resource, such as "pods".
	Resource string `json:"resource" protobuf:"bytes,2,opt,name=resource"`

	// Count is the number of remaining objects. It is not set if they could not all
	// be listed.
	// +optional
	Count *int64 `json:"count,omitempty" protobuf:"varint,3,opt,name=count"`

	// Objects are at most five of the remaining objects. Those that are marked for
	// deletion come first, in the order of their deletionTimestamp.
	// +optional
	// +listType=atomic
	Objects []RemainingObject `json:"objects,omitempty" protobuf:"bytes,4,rep,name=objects"`

	// LastError is the error of the last attempt to list and delete the objects.
	// +optional
	LastError string `json:"lastError,omitempty" protobuf:"bytes,5,opt,name=lastError"`
}

// RemainingObject is an object that remains in a Terminating Namespace.
type RemainingObject struct {
	// Name of the object.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// Finalizers of the object, at most five.
	// +optional
	// +listType=atomic
	Finalizers []string `json:"finalizers,omitempty" protobuf:"bytes,2,rep,name=finalizers"`

	// DeletionTimestamp is the deletionTimestamp of the object: when it was deleted
	// or, for a Pod, when its grace period ends. It is not set for an object that
	// is not marked for deletion.
	// +optional
	DeletionTimestamp *metav1.Time `json:"deletionTimestamp,omitempty" protobuf:"bytes,3,opt,name=deletionTimestamp"`

	// DeletionGracePeriodSeconds is the deletionGracePeriodSeconds of the object:
	// the time, in seconds, between its deletion and its deletionTimestamp.
	// +optional
	DeletionGracePeriodSeconds *int64 `json:"deletionGracePeriodSeconds,omitempty" protobuf:"varint,4,opt,name=deletionGracePeriodSeconds"`
}

// UndiscoveredGroup is an API group whose resources could not be discovered.
type UndiscoveredGroup struct {
	// GroupVersion is the group and version, such as "example.com/v1". It is empty
	// if the list of groups could not be read.
	// +optional
	GroupVersion string `json:"groupVersion,omitempty" protobuf:"bytes,1,opt,name=groupVersion"`

	// LastError is the error of the last attempt to discover it.
	LastError string `json:"lastError" protobuf:"bytes,2,opt,name=lastError"`
}

// NamespaceCondition is an observation about the termination of a Namespace.
type NamespaceCondition struct {
	// Type of the condition.
	Type NamespaceConditionType `json:"type" protobuf:"bytes,1,opt,name=type,casttype=NamespaceConditionType"`
	// Status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status" protobuf:"bytes,2,opt,name=status,casttype=k8s.io/api/core/v1.ConditionStatus"`
	// LastTransitionTime is the last time the status of the condition changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty" protobuf:"bytes,4,opt,name=lastTransitionTime"`
	// Reason for the last transition, one word in CamelCase.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,5,opt,name=reason"`
	// Message is a human-readable explanation of the status.
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

// LimitRange sets defaults and bounds for the resources of the Pods in its
// Namespace. Several in one Namespace apply in the order of their names.
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

// UsageRulesAnnotation is the key of the annotation of a ResourceQuota whose value is the
// version of the rules by which its usage was computed. Only the server sets it. If a release
// of Borough has other rules, it counts the quota again before it changes the usage.
const UsageRulesAnnotation = GroupName + "/usage-rules"

// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceQuota limits what the objects in its Namespace may use together. Each write
// that changes the usage also updates status.used, in the same transaction.
type ResourceQuota struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec defines the limits that are enforced.
	// +optional
	Spec corev1.ResourceQuotaSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// Status has the limits and the usage. Only the server sets it. The usage is missing
	// until the objects are counted: after the create, and again after an update that
	// limits another resource or counts other objects. Requests that would change it wait
	// until then.
	// +optional
	Status corev1.ResourceQuotaStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceQuotaList is a list of ResourceQuotas.
type ResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Items are the ResourceQuotas.
	Items []ResourceQuota `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// +genclient
// +genclient:method=UpdateEphemeralContainers,verb=update,subresource=ephemeralcontainers
// +genclient:method=UpdateResize,verb=update,subresource=resize
// +genclient:method=Bind,verb=create,subresource=binding,input=github.com/borough-io/borough/pkg/apis/tenancy/v1.Binding,result=github.com/borough-io/borough/pkg/apis/tenancy/v1.Binding
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

	// Spec defines the desired state of the Pod.
	// +optional
	Spec corev1.PodSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// Status is the observed state of the Pod, written by the server and by the
	// agent that runs the Pod.
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

// Binding assigns a Pod to a node. It is created through the binding subresource
// of the Pod and is not stored.
type Binding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The UID and the resourceVersion, if set, must be
	// those of the Pod.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Target is the node to assign the Pod to.
	Target corev1.ObjectReference `json:"target" protobuf:"bytes,2,opt,name=target"`
}
