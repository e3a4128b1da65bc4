// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import "k8s.io/apimachinery/pkg/runtime/schema"

// NamespacedKind is a kind whose objects are stored in a Namespace.
//
// +k8s:deepcopy-gen=false
type NamespacedKind struct {
	// Kind is its name, Resource the plural in its paths.
	Kind, Resource string
	// PurgedFirst means that a purge deletes the other kinds only when no object of
	// this one is left.
	PurgedFirst bool
}

// GroupResource returns the resource with the group.
func (k NamespacedKind) GroupResource() schema.GroupResource { return Resource(k.Resource) }

// NamespacedKinds returns all namespaced kinds. Storage creates their objects only
// in a Namespace that exists and is Active, and removes a Namespace only when there
// are none; a purge deletes them in this order; the controller and the tenants have
// rights on them.
func NamespacedKinds() []NamespacedKind {
	return []NamespacedKind{
		// Containers run until their Pod is deleted, and may need the other content to
		// shut down.
		{Kind: "Pod", Resource: "pods", PurgedFirst: true},
		{Kind: "LimitRange", Resource: "limitranges"},
	}
}

// NamespacedResources returns the resources of the namespaced kinds.
func NamespacedResources() []schema.GroupResource {
	var resources []schema.GroupResource
	for _, kind := range NamespacedKinds() {
		resources = append(resources, kind.GroupResource())
	}
	return resources
}
