// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission initializes Borough's admission plugins with the informers and
// the client of the server's own API.
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
	// gets the informers that it needs from the factory, which then starts them.
	SetTenancyInformers(externalversions.SharedInformerFactory)
}

// WantsTenancyClient is a plugin that reads tenancy.borough.io objects from
// storage.
type WantsTenancyClient interface {
	// SetTenancyClient is called once, before the first request.
	SetTenancyClient(versioned.Interface)
}

// Initializer sets the informers and the client of the plugins.
type Initializer struct {
	informers externalversions.SharedInformerFactory
	client    versioned.Interface
}

var _ admission.PluginInitializer = &Initializer{}

// NewInitializer returns an Initializer with the informers and the client. The
// caller starts the informers after all plugins are initialized.
func NewInitializer(informers externalversions.SharedInformerFactory, client versioned.Interface) *Initializer {
	return &Initializer{informers: informers, client: client}
}

// Initialize sets the informers and the client if the plugin wants them.
func (i *Initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsTenancyInformers); ok {
		wants.SetTenancyInformers(i.informers)
	}
	if wants, ok := plugin.(WantsTenancyClient); ok {
		wants.SetTenancyClient(i.client)
	}
}
