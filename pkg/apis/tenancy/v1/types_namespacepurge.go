// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ForceVerb is the verb on namespacepurges that authorizes spec.force, in
// addition to the verb create.
const ForceVerb = "force"

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespacePurge deletes the content of a Terminating Namespace. Creating a
// NamespacePurge runs the purge, and the response reports the result in status;
// nothing is stored. borough-controller-manager empties Namespaces this way.
// Objects with finalizers, and Pods with a grace period, are marked for deletion.
// They stay until their finalizers are removed and the Pods have ended. With
// spec.force they are removed as well. The Namespace itself, and its own
// finalizers, are not changed without spec.finalize. In a dry run nothing is
// deleted, and status reports what would be deleted.
type NamespacePurge struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name has no meaning; it defaults to the
	// name of the Namespace.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec selects the Namespace and the way its content is deleted.
	Spec NamespacePurgeSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// Status is the result. It is set by the server.
	// +optional
	Status NamespacePurgeStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// NamespacePurgeSpec selects the Namespace and the way its content is deleted.
type NamespacePurgeSpec struct {
	// NamespaceUID is the metadata.uid of the Namespace. It is required, so that
	// the purge of a Namespace never deletes content of a later Namespace with the
	// same name.
	NamespaceUID types.UID `json:"namespaceUID" protobuf:"bytes,1,opt,name=namespaceUID,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// Force removes all objects at once, without waiting for finalizers or for
	// the grace period of Pods. What the finalizers protect, such as a volume to
	// release or a container to stop, may be left behind. It requires the verb
	// force on namespacepurges in addition to create. Defaults to false.
	// +optional
	Force bool `json:"force" protobuf:"varint,2,opt,name=force"`

	// Finalize also removes the finalizer kubernetes, and with it the Namespace,
	// if no content is left and no other finalizer holds the Namespace. It
	// requires the verb update on namespaces/finalize in addition to create.
	// Defaults to false.
	// +optional
	Finalize bool `json:"finalize,omitempty" protobuf:"varint,3,opt,name=finalize"`
}

// NamespacePurgeStatus is the result of a NamespacePurge. In a dry run it is
// what the result would be.
type NamespacePurgeStatus struct {
	// Purged has an entry for each resource that was purged, in this order:
	// resourcequotas, pods, other resources, rolebindings and roles. Without
	// force, other resources follow only if no pod is left, and rolebindings and
	// roles only if nothing else is left. Resources that were not reached
	// have no entry.
	// +optional
	// +listType=atomic
	Purged []PurgedResource `json:"purged,omitempty" protobuf:"bytes,1,rep,name=purged"`

	// Finalized is true if the Namespace was removed. It is false if
	// spec.finalize is not set, or if content or another finalizer holds the
	// Namespace.
	// +optional
	Finalized bool `json:"finalized,omitempty" protobuf:"varint,2,opt,name=finalized"`
}

// PurgedResource is the result of a NamespacePurge for one resource.
type PurgedResource struct {
	// Group is the API group of the resource.
	// +optional
	Group string `json:"group,omitempty" protobuf:"bytes,1,opt,name=group"`

	// Resource is the name of the resource, such as "pods".
	Resource string `json:"resource" protobuf:"bytes,2,opt,name=resource"`

	// Removed is the number of objects that were removed from storage.
	Removed int64 `json:"removed" protobuf:"varint,3,opt,name=removed"`

	// Held is the number of objects that have a finalizer or a grace period.
	// Without force they remain, marked for deletion; 0 means that no object
	// that can be read remains, since no object can be created in a Terminating Namespace. With
	// force they are included in removed, and may have left something behind.
	Held int64 `json:"held" protobuf:"varint,4,opt,name=held"`

	// Objects are the held objects, up to 100 of them, in order of their names.
	// +optional
	// +listType=atomic
	Objects []RemainingObject `json:"objects,omitempty" protobuf:"bytes,5,rep,name=objects"`
}
