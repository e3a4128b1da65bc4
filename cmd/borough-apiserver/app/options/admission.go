// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/borough-io/borough/pkg/admission/hostplugins"
	"github.com/borough-io/borough/pkg/admission/limitranger"
	"github.com/borough-io/borough/pkg/admission/namespacelifecycle"
)

// newAdmissionOptions is what the library's constructor does, with plugins of
// our own: the library has already registered a NamespaceLifecycle, one that
// looks in the host cluster.
func newAdmissionOptions() *genericoptions.AdmissionOptions {
	plugins := admission.NewPlugins()
	namespacelifecycle.Register(plugins)
	limitranger.Register(plugins)
	hostplugins.Register(plugins)
	return &genericoptions.AdmissionOptions{
		Plugins: plugins,
		Decorators: admission.Decorators{
			hostplugins.Decorator(),
			admission.DecoratorFunc(admissionmetrics.WithControllerMetrics),
		},
		RecommendedPluginOrder: append([]string{namespacelifecycle.PluginName, limitranger.PluginName}, hostplugins.Names()...),
		DefaultOffPlugins:      sets.New[string](),
	}
}
