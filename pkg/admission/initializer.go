// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission gives Borough's admission plugins what they work with: the
// informers and the client of the server's own API.
package admission

import (
	"k8s.io/apiserver/pkg/admission"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// WantsTenancyInformers is a plugin that reads tenancy.borough.io objects from a
// cache.
type WantsTenancyInformers interface {
	// SetTenancyInformers is called once, before the informers start. The plugin
	// asks the factory for the informers that it reads from, so that they do.
	SetTenancyInformers(externalversions.SharedInformerFactory)
}

// WantsTenancyClient is a plugin that reads tenancy.borough.io objects from
// storage.
type WantsTenancyClient interface {
	// SetTenancyClient is called once, before the first request.
	SetTenancyClient(versioned.Interface)
}

// Initializer hands out the informers and the client.
type Initializer struct {
	informers externalversions.SharedInformerFactory
	client    versioned.Interface
}

var _ admission.PluginInitializer = &Initializer{}

// NewInitializer returns an Initializer of what its plugins read through. The
// caller starts the informers after all plugins are initialized.
func NewInitializer(informers externalversions.SharedInformerFactory, client versioned.Interface) *Initializer {
	return &Initializer{informers: informers, client: client}
}

// Initialize gives the plugin what it wants.
func (i *Initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsTenancyInformers); ok {
		wants.SetTenancyInformers(i.informers)
	}
	if wants, ok := plugin.(WantsTenancyClient); ok {
		wants.SetTenancyClient(i.client)
	}
}
