// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission gives Borough's admission plugins what they need of the server.
package admission

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/pkg/quota"
)

// WantsTenancyInformers is a plugin that reads tenancy.borough.io objects from a
// cache.
type WantsTenancyInformers interface {
	// SetTenancyInformers is called once, before the informers start. The plugin
	// gets the informers that it needs from the factory, which then starts them.
	SetTenancyInformers(externalversions.SharedInformerFactory)
}

// WantsTenancyClient is a plugin that reads tenancy.borough.io objects from
// storage.
type WantsTenancyClient interface {
	// SetTenancyClient is called once, before the first request.
	SetTenancyClient(versioned.Interface)
}

// WantsNamespaceCache is a plugin that reads the phase of Namespaces from a cache.
type WantsNamespaceCache interface {
	// SetNamespaceCache is called once, before the first request.
	SetNamespaceCache(NamespaceCache)
}

// WantsQuotas is a plugin that checks changes against quotas.
type WantsQuotas interface {
	// SetQuotas is called once, before the first request.
	SetQuotas(quota.Checker)
}

// Unreadable returns the names of the objects of a resource in a namespace that
// are stored but cannot be read. Informers and clients do not return them.
type Unreadable func(resource schema.GroupResource, namespace string) (names []string)

// WantsUnreadable is a plugin that must not treat an object that cannot be read as
// one that does not exist.
type WantsUnreadable interface {
	// SetUnreadable is called once, before the first request.
	SetUnreadable(Unreadable)
}

// Initializer gives each plugin what it wants.
type Initializer struct {
	// Informers are started by the caller, after all plugins are initialized.
	Informers  externalversions.SharedInformerFactory
	Client     versioned.Interface
	Namespaces NamespaceCache
	Quotas     quota.Checker
	Unreadable Unreadable
}

var _ admission.PluginInitializer = &Initializer{}

// Initialize sets what the plugin wants.
func (i *Initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsTenancyInformers); ok {
		wants.SetTenancyInformers(i.Informers)
	}
	if wants, ok := plugin.(WantsTenancyClient); ok {
		wants.SetTenancyClient(i.Client)
	}
	if wants, ok := plugin.(WantsNamespaceCache); ok {
		wants.SetNamespaceCache(i.Namespaces)
	}
	if wants, ok := plugin.(WantsQuotas); ok {
		wants.SetQuotas(i.Quotas)
	}
	if wants, ok := plugin.(WantsUnreadable); ok {
		wants.SetUnreadable(i.Unreadable)
	}
}
