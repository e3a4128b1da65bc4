// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
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

// readAdmissionConfig reads an admission configuration as the library does, except that
// it refuses the files without a kind that old versions of Kubernetes had.
func readAdmissionConfig(file string) (*apiserver.AdmissionConfiguration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err // has the name of the file
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoded, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), data)
	switch {
	case runtime.IsMissingKind(err): // the error has the content
		return nil, fmt.Errorf("%s: the kind must be AdmissionConfiguration", file)
	case runtime.IsMissingVersion(err): // the error has the content
		return nil, fmt.Errorf("%s: the apiVersion must be apiserver.config.k8s.io/v1", file)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	config, ok := decoded.(*apiserver.AdmissionConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s: the kind must be AdmissionConfiguration, not %s", file, reflect.TypeOf(decoded).Elem().Name())
	}
	return config, nil
}
