// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// Unreadable returns the names of the objects of a resource in a namespace that
// are stored but cannot be read. Informers and clients do not return them. It is
// also the initializer of the plugins that want it.
type Unreadable func(resource schema.GroupResource, namespace string) (names []string)

// WantsUnreadable is a plugin that must not treat an object that cannot be read as
// one that does not exist.
type WantsUnreadable interface {
	// SetUnreadable is called once, before the first request.
	SetUnreadable(Unreadable)
}

var _ admission.PluginInitializer = Unreadable(nil)

// Initialize sets the function if the plugin wants it.
func (u Unreadable) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsUnreadable); ok {
		wants.SetUnreadable(u)
	}
}
