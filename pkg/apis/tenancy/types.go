// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FinalizerName names an agent that has to agree before a Namespace goes.
type FinalizerName string

// FinalizerKubernetes is the finalizer of the namespace controller. Every
// Namespace is created with it.
const FinalizerKubernetes FinalizerName = "kubernetes"

// LabelMetadataName is the label of a Namespace that always equals its name.
const LabelMetadataName = corev1.LabelMetadataName

// NamespacePhase is where a Namespace stands in its life.
type NamespacePhase string

const (
	// NamespaceActive means that content can be created in the Namespace.
	NamespaceActive NamespacePhase = "Active"
	// NamespaceTerminating means that the Namespace is being deleted: its
	// content is purged and none can be created.
	NamespaceTerminating NamespacePhase = "Terminating"
)

// NamespaceConditionType names a condition of a Namespace.
type NamespaceConditionType string

// Namespace partitions content: the objects in it live and go with it.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Namespace struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   NamespaceSpec
	Status NamespaceStatus
}

// NamespaceSpec is what is wanted of a Namespace.
type NamespaceSpec struct {
	// Finalizers must be empty before the Namespace is removed from storage.
	Finalizers []FinalizerName
	// DeletionProtection has every DELETE refused.
	DeletionProtection bool
}

// NamespaceStatus is what was last observed of a Namespace.
type NamespaceStatus struct {
	Phase      NamespacePhase
	Conditions []NamespaceCondition
	// Termination tells what a Terminating Namespace waits for; nil while there
	// is nothing to tell.
	Termination *NamespaceTermination
}

// NamespaceTermination tells what a Terminating Namespace waits for. Its lists
// hold the first few of what there is.
type NamespaceTermination struct {
	LastProgressTime   metav1.Time
	SpecFinalizers     []FinalizerName
	MetadataFinalizers []string
	Remaining          []RemainingResource
	OmittedResources   int32
	Undiscovered       []UndiscoveredGroup
	LastError          string
}

// RemainingResource is what is left of one resource in a Terminating Namespace.
type RemainingResource struct {
	Group     string
	Resource  string
	Count     *int64 // nil when not all could be listed
	Objects   []RemainingObject
	LastError string
}

// RemainingObject is an object that is left in a Terminating Namespace.
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

// NamespaceCondition is one observation about the termination of a Namespace.
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

// LimitRange gives defaults and bounds for what Pods in its Namespace request.
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

// Pod is a group of containers. Its spec and status are those of core/v1, so
// there is no internal form of them to convert to.
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

// Binding assigns a Pod to a node. It is sent to pods/binding and not stored.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Binding struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Target corev1.ObjectReference
}

// NamespacePurge removes what is left in a Terminating Namespace, whatever holds
// it. It is sent to namespacepurges and not stored.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NamespacePurge struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   NamespacePurgeSpec
	Status NamespacePurgeStatus
}

// NamespacePurgeSpec says which Namespace is meant.
type NamespacePurgeSpec struct {
	NamespaceUID types.UID
}

// NamespacePurgeStatus tells what was removed.
type NamespacePurgeStatus struct {
	Purged []PurgedResource
}

// PurgedResource tells what was removed of one resource.
type PurgedResource struct {
	Group    string
	Resource string
	Count    int64
	Held     int64 // of these, the objects that something held
	Objects  []RemainingObject
}
