// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import "k8s.io/apimachinery/pkg/runtime/schema"

// NamespacedKind is a kind whose objects are stored in a Namespace.
//
// +k8s:deepcopy-gen=false
type NamespacedKind struct {
	// Group is its API group, Kind its name, Resource the plural in its paths.
	Group, Kind, Resource string
	// PurgeStage decides whether a purge, which follows the order of the list, skips the
	// kind: if an object of an earlier kind with a lower stage is left.
	PurgeStage int
}

// The stages of a purge.
const (
	// PurgeContainers deletes what runs. Containers run until their Pod is deleted, and
	// may need the other content to shut down.
	PurgeContainers = iota
	// PurgeContent deletes all other content, except rights.
	PurgeContent
	// PurgeRights deletes rights in the Namespace, last: the user who has to finish a
	// termination keeps the right to.
	PurgeRights
)

// GroupResource returns the resource with the group.
func (k NamespacedKind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// NamespacedKinds returns all namespaced kinds of our group. Storage creates their
// objects only in a Namespace that exists and is Active, and removes a Namespace only
// when there are none; a purge deletes them in this order, which is that of their stages
// except for quotas; the controller and the tenants have rights on them. A standalone
// server has those of package kubernetes, too.
func NamespacedKinds() []NamespacedKind {
	return []NamespacedKind{
		// First, so that nothing that is still written in a Terminating Namespace is counted.
		// A quota that is held holds up only rights.
		{Group: GroupName, Kind: "ResourceQuota", Resource: "resourcequotas", PurgeStage: PurgeContent},
		{Group: GroupName, Kind: "Pod", Resource: "pods", PurgeStage: PurgeContainers},
		{Group: GroupName, Kind: "LimitRange", Resource: "limitranges", PurgeStage: PurgeContent},
	}
}

// GroupResources returns the resources of kinds.
func GroupResources(kinds []NamespacedKind) []schema.GroupResource {
	var resources []schema.GroupResource
	for _, kind := range kinds {
		resources = append(resources, kind.GroupResource())
	}
	return resources
}
