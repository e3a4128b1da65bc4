// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostplugins has the library's admission plugins that are configured
// by objects of the host cluster: webhooks and policies. The library takes for
// granted that the Namespaces of what they admit are the host's as well; this
// package shows them ours.
package hostplugins

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// Names are the plugins, in the order in which they run.
func Names() []string {
	return []string{
		mutatingpolicy.PluginName,
		mutatingwebhook.PluginName,
		validatingpolicy.PluginName,
		validatingwebhook.PluginName,
	}
}

// Register registers the plugins.
func Register(plugins *admission.Plugins) {
	mutatingpolicy.Register(plugins)
	mutatingwebhook.Register(plugins)
	validatingpolicy.Register(plugins)
	validatingwebhook.Register(plugins)
}

// Decorator tells the plugins, of a request for a Namespace that exists, the
// namespace that it would have in core: its name. They find the labels of the
// Namespace by it, for a namespaceSelector. The other plugins are left alone.
func Decorator() admission.Decorator {
	names := map[string]bool{}
	for _, name := range Names() {
		names[name] = true
	}
	return admission.DecoratorFunc(func(handler admission.Interface, name string) admission.Interface {
		if !names[name] {
			return handler
		}
		return decorated{handler}
	})
}

type decorated struct {
	admission.Interface
}

func (d decorated) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if mutator, ok := d.Interface.(admission.MutationInterface); ok {
		return mutator.Admit(ctx, asInCore(a), o)
	}
	return nil
}

func (d decorated) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if validator, ok := d.Interface.(admission.ValidationInterface); ok {
		return validator.Validate(ctx, asInCore(a), o)
	}
	return nil
}

func asInCore(a admission.Attributes) admission.Attributes {
	if a.GetResource().GroupResource() != tenancy.Resource("namespaces") {
		return a
	}
	if a.GetSubresource() == "" && a.GetOperation() != admission.Delete {
		// The labels are taken from the object: the Namespace may be new.
		return a
	}
	return attributes{a}
}

type attributes struct {
	admission.Attributes
}

func (a attributes) GetNamespace() string { return a.GetName() }
