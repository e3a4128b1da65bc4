// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/borough-io/borough/pkg/admission/limitranger"
	"github.com/borough-io/borough/pkg/admission/namespacelifecycle"
)

// hostPlugins are configured by objects of the host cluster.
var hostPlugins = []string{
	mutatingpolicy.PluginName,
	mutatingwebhook.PluginName,
	validatingpolicy.PluginName,
	validatingwebhook.PluginName,
}

// newAdmissionOptions is what the library's constructor does, with plugins of
// our own: the library has already registered a NamespaceLifecycle, one that
// looks in the host cluster.
func newAdmissionOptions() *genericoptions.AdmissionOptions {
	plugins := admission.NewPlugins()
	namespacelifecycle.Register(plugins)
	limitranger.Register(plugins)
	mutatingpolicy.Register(plugins)
	mutatingwebhook.Register(plugins)
	validatingpolicy.Register(plugins)
	validatingwebhook.Register(plugins)
	return &genericoptions.AdmissionOptions{
		Plugins:                plugins,
		Decorators:             admission.Decorators{admission.DecoratorFunc(admissionmetrics.WithControllerMetrics)},
		RecommendedPluginOrder: append([]string{namespacelifecycle.PluginName, limitranger.PluginName}, hostPlugins...),
		DefaultOffPlugins:      sets.New[string](),
	}
}
