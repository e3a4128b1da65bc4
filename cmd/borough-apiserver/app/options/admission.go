// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/borough-io/borough/pkg/admission/clusterplugins"
	"github.com/borough-io/borough/pkg/admission/limitranger"
	"github.com/borough-io/borough/pkg/admission/namespacelifecycle"
	"github.com/borough-io/borough/pkg/admission/ownerreferences"
	"github.com/borough-io/borough/pkg/admission/resourcequota"
)

// newAdmissionOptions does what the library's constructor does, but registers our
// own plugins: the constructor registers a NamespaceLifecycle that looks up
// namespaces of the cluster.
func newAdmissionOptions(newNamespaces *clusterplugins.NewNamespaces) *genericoptions.AdmissionOptions {
	plugins := admission.NewPlugins()
	namespacelifecycle.Register(plugins)
	limitranger.Register(plugins)
	clusterplugins.Register(plugins)
	ownerreferences.Register(plugins)
	resourcequota.Register(plugins)
	order := []string{namespacelifecycle.PluginName, limitranger.PluginName, ownerreferences.PluginName}
	order = append(order, clusterplugins.Names()...)
	order = append(order, resourcequota.PluginName) // last, as in Kubernetes
	return &genericoptions.AdmissionOptions{
		Plugins: plugins,
		Decorators: admission.Decorators{
			clusterplugins.Decorator(newNamespaces),
			admission.DecoratorFunc(admissionmetrics.WithControllerMetrics),
		},
		RecommendedPluginOrder: order,
		DefaultOffPlugins:      sets.New(ownerreferences.PluginName), // as in Kubernetes
	}
}
