// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FinalizerName identifies an agent that must finalize a Namespace before it is
// removed.
type FinalizerName string

// FinalizerKubernetes is the finalizer of borough-controller-manager. Every
// Namespace is created with it.
const FinalizerKubernetes FinalizerName = "kubernetes"

// LabelMetadataName is the key of the label whose value is the name of the
// Namespace.
const LabelMetadataName = corev1.LabelMetadataName

// UsageRulesAnnotation is that of v1.
const UsageRulesAnnotation = GroupName + "/usage-rules"

// RequesterAnnotation is the key of the annotation of a Namespace whose value is the
// name of the user who requested it.
const RequesterAnnotation = GroupName + "/requester"

// NamespacePhase is the phase in the life cycle of a Namespace.
type NamespacePhase string

const (
	// NamespaceActive means that content can be created in the Namespace.
	NamespaceActive NamespacePhase = "Active"
	// NamespaceTerminating means that the Namespace is being deleted: its content
	// is purged, and no content can be created in it.
	NamespaceTerminating NamespacePhase = "Terminating"
)

// NamespaceConditionType is the type of a condition of a Namespace.
type NamespaceConditionType string

// Namespace is a scope for names. The objects in it are deleted with it.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Namespace struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   NamespaceSpec
	Status NamespaceStatus
}

// NamespaceSpec defines the desired state of a Namespace.
type NamespaceSpec struct {
	// Finalizers must be empty before the Namespace is removed from storage.
	Finalizers []FinalizerName
	// DeletionProtection rejects every DELETE.
	DeletionProtection bool
}

// NamespaceStatus is the observed state of a Namespace.
type NamespaceStatus struct {
	Phase      NamespacePhase
	Conditions []NamespaceCondition
	// Termination lists what a Terminating Namespace waits for. It is nil if there
	// is nothing to report.
	Termination *NamespaceTermination
}

// NamespaceTermination lists what a Terminating Namespace waits for. Its lists have
// a maximum length.
type NamespaceTermination struct {
	LastProgressTime   metav1.Time
	SpecFinalizers     []FinalizerName
	MetadataFinalizers []string
	Remaining          []RemainingResource
	OmittedResources   int32
	Undiscovered       []UndiscoveredGroup
	LastError          string
}

// RemainingResource has the objects of one resource that remain in a Terminating
// Namespace.
type RemainingResource struct {
	Group     string
	Resource  string
	Count     *int64 // nil if they could not all be listed
	Objects   []RemainingObject
	LastError string
}

// RemainingObject is an object that remains in a Terminating Namespace.
type RemainingObject struct {
	Name                       string
	Finalizers                 []string
	DeletionTimestamp          *metav1.Time
	DeletionGracePeriodSeconds *int64
}

// UndiscoveredGroup is an API group whose resources could not be discovered.
type UndiscoveredGroup struct {
	GroupVersion string
	LastError    string
}

// NamespaceCondition is an observation about the termination of a Namespace.
type NamespaceCondition struct {
	Type               NamespaceConditionType
	Status             corev1.ConditionStatus
	LastTransitionTime metav1.Time
	Reason             string
	Message            string
}

// NamespaceList is a list of Namespaces.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NamespaceList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Namespace
}

// LimitRange sets defaults and bounds for the resources of Pods in its Namespace.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LimitRange struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec corev1.LimitRangeSpec
}

// LimitRangeList is a list of LimitRanges.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LimitRangeList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []LimitRange
}

// ResourceQuota limits what the objects in its Namespace may use together.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceQuota struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   corev1.ResourceQuotaSpec
	Status corev1.ResourceQuotaStatus
}

// ResourceQuotaList is a list of ResourceQuotas.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceQuotaList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []ResourceQuota
}

// PodBeingDeletedInField is a field of a Pod in the watch cache, with its Namespace as the
// value if the Pod is being deleted. It has an index. Clients cannot select by it.
const PodBeingDeletedInField = "beingDeletedIn"

// Pod is a group of containers. Its spec and status are the types of core/v1, which
// have no internal version here.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Pod struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   corev1.PodSpec
	Status corev1.PodStatus
}

// PodList is a list of Pods.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PodList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Pod
}

// Binding assigns a Pod to a node. It is created through pods/binding and is not
// stored.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Binding struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Target corev1.ObjectReference
}

// NamespacePurge deletes the content of a Terminating Namespace. Creating one runs
// the purge; nothing is stored.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NamespacePurge struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   NamespacePurgeSpec
	Status NamespacePurgeStatus
}

// NamespacePurgeSpec selects the Namespace and the way its content is deleted.
type NamespacePurgeSpec struct {
	NamespaceUID types.UID
	Force        bool
	Finalize     bool
}

// NamespacePurgeStatus is the result of a NamespacePurge.
type NamespacePurgeStatus struct {
	Purged    []PurgedResource
	Finalized bool
}

// PurgedResource is the result for one resource.
type PurgedResource struct {
	Group    string
	Resource string
	Removed  int64
	Held     int64 // objects with a finalizer or a grace period
	Objects  []RemainingObject
}

// NamespaceRequest creates a Namespace for the user who sends it; the request itself
// is not stored.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NamespaceRequest struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Status NamespaceRequestStatus
}

// NamespaceRequestStatus is the result of a NamespaceRequest.
type NamespaceRequestStatus struct {
	NamespaceUID types.UID
	// RoleBinding is the name of the RoleBinding in the Namespace.
	RoleBinding string
}

// ProjectAccess is the highest access of a user to a Namespace.
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

// Project is a Namespace as a user sees it. It is not stored.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Project struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   ProjectSpec
	Status ProjectStatus
}

// ProjectSpec is the desired state of a Namespace.
type ProjectSpec struct {
	Finalizers []FinalizerName
}

// ProjectStatus is the state of a Namespace, and the access of the user.
type ProjectStatus struct {
	Phase  NamespacePhase
	Access ProjectAccess
}

// ProjectList is a list of Projects.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProjectList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Project
}
