// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"k8s.io/apiserver/pkg/admission"

	"github.com/borough-io/borough/pkg/quota"
)

// Quotas initializes the plugins that want to check changes against quotas.
type Quotas struct{ quota.Checker }

// WantsQuotas is a plugin that checks changes against quotas.
type WantsQuotas interface {
	// SetQuotas is called once, before the first request.
	SetQuotas(quota.Checker)
}

var _ admission.PluginInitializer = Quotas{}

// Initialize sets the checker if the plugin wants it.
func (q Quotas) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsQuotas); ok {
		wants.SetQuotas(q.Checker)
	}
}
