// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespacePurge is the way out of a termination that nobody is left to finish.
// Creating one removes everything in a Terminating Namespace at once: without
// waiting for finalizers, or for whoever runs the Pods. What these stood for,
// such as a volume to give back or a container to stop, may be left behind. The
// Namespace goes after that as it always does; its own finalizers stay. A
// NamespacePurge is not stored: the answer is all there is of it. With dryRun
// the answer tells what would be removed, and nothing is.
type NamespacePurge struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name means nothing; without one it is that
	// of the Namespace.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec says which Namespace is meant.
	Spec NamespacePurgeSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// Status tells what was removed. It is filled in by the server.
	// +optional
	Status NamespacePurgeStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// NamespacePurgeSpec says which Namespace is meant.
type NamespacePurgeSpec struct {
	// NamespaceUID is the metadata.uid of the Namespace. It is required, so that
	// a purge that was meant for one Namespace never hits the next of its name.
	NamespaceUID types.UID `json:"namespaceUID" protobuf:"bytes,1,opt,name=namespaceUID,casttype=k8s.io/apimachinery/pkg/types.UID"`
}

// NamespacePurgeStatus tells what a NamespacePurge has removed or, in a dry run,
// would remove.
type NamespacePurgeStatus struct {
	// Purged tells what was removed, by resource, in the order in which the
	// resources were purged. Resources of which nothing was there are left out.
	// +optional
	// +listType=atomic
	Purged []PurgedResource `json:"purged,omitempty" protobuf:"bytes,1,rep,name=purged"`
}

// PurgedResource tells what a NamespacePurge has removed of one resource.
type PurgedResource struct {
	// Group is the API group of the resource.
	// +optional
	Group string `json:"group,omitempty" protobuf:"bytes,1,opt,name=group"`

	// Resource is the name of the resource, such as "pods".
	Resource string `json:"resource" protobuf:"bytes,2,opt,name=resource"`

	// Count is the number of objects that were removed.
	Count int64 `json:"count" protobuf:"varint,3,opt,name=count"`

	// Held is how many of these something held: a finalizer, or a grace period
	// that nobody had confirmed the end of. They are the ones that may have left
	// something behind.
	Held int64 `json:"held" protobuf:"varint,4,opt,name=held"`

	// Objects are the objects that something held, as they were when they were
	// removed: up to a hundred of them, in the order of their names.
	// +optional
	// +listType=atomic
	Objects []RemainingObject `json:"objects,omitempty" protobuf:"bytes,5,rep,name=objects"`
}
