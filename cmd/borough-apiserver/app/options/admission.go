// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/apiserver/pkg/apis/apiserver"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/borough-io/borough/pkg/admission/clusterplugins"
	"github.com/borough-io/borough/pkg/admission/limitranger"
	"github.com/borough-io/borough/pkg/admission/namespacelifecycle"
	"github.com/borough-io/borough/pkg/admission/ownerreferences"
	"github.com/borough-io/borough/pkg/admission/resourcequota"
	"github.com/borough-io/borough/pkg/configfile"
)

// newAdmissionOptions does what the library's constructor does, but registers our
// own plugins: the constructor registers a NamespaceLifecycle that looks up
// namespaces of the cluster.
func newAdmissionOptions(pendingNamespaces *clusterplugins.PendingNamespaces) *genericoptions.AdmissionOptions {
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
			clusterplugins.Decorator(pendingNamespaces),
			admission.DecoratorFunc(admissionmetrics.WithControllerMetrics),
		},
		RecommendedPluginOrder: order,
		DefaultOffPlugins:      sets.New(ownerreferences.PluginName), // as in Kubernetes
	}
}

// validateAdmissionConfig returns an error for each section of the admission
// configuration that cannot have an effect, which the library ignores. Only the plugins
// that the cluster configures have a configuration. If a flag disables one of them, the
// operator knows that, so its section is no error.
func (o *Options) validateAdmissionConfig() (errs []error) {
	file := o.Admission.ConfigFile
	if file == "" {
		return nil
	}
	config, err := readAdmissionConfig(file)
	if err != nil {
		return []error{fmt.Errorf("--admission-control-config-file: %w", err)}
	}
	for _, plugin := range config.Plugins {
		reason := ""
		switch {
		case !slices.Contains(o.Admission.RecommendedPluginOrder, plugin.Name):
			reason = "is not a plugin of this server"
		case !slices.Contains(clusterplugins.Names(), plugin.Name):
			if plugin.Path != "" || plugin.Configuration != nil {
				reason = "takes no configuration"
			}
		case o.Standalone:
			reason = "is configured by objects of a cluster and cannot be used with --standalone"
		}
		if reason != "" {
			errs = append(errs, fmt.Errorf("--admission-control-config-file: %s: %s %s", file, plugin.Name, reason))
		}
	}
	return errs
}

// readAdmissionConfig reads an admission configuration.
func readAdmissionConfig(file string) (*apiserver.AdmissionConfiguration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err // has the name of the file
	}
	config, err := configfile.Decode[apiserver.AdmissionConfiguration](data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}
