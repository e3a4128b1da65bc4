// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterplugins registers the library's admission plugins that objects of
// the cluster configure: webhooks and policies. The library assumes that the objects
// to admit are in namespaces of the cluster; this package makes the plugins read our
// Namespaces instead.
package clusterplugins

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// Names returns the names of the plugins, in the order in which they run.
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

// Decorator wraps the plugins so that a request for an existing Namespace has the
// Namespace's name as its namespace, as in core. By it the plugins look up the labels
// of the Namespace for a namespaceSelector. While they are asked about an object whose
// Namespace is created with it, pendingNamespaces has that. It does not change other plugins.
func Decorator(pendingNamespaces *PendingNamespaces) admission.Decorator {
	return admission.DecoratorFunc(func(handler admission.Interface, name string) admission.Interface {
		if !slices.Contains(Names(), name) {
			return handler
		}
		return wrapper{handler, pendingNamespaces}
	})
}

type wrapper struct {
	admission.Interface
	pendingNamespaces *PendingNamespaces
}

func (w wrapper) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	mutator, ok := w.Interface.(admission.MutationInterface)
	if !ok {
		return nil
	}
	return w.pendingNamespaces.while(ctx, a, func() error { return mutator.Admit(ctx, withNamespaceName(a), o) })
}

func (w wrapper) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	validator, ok := w.Interface.(admission.ValidationInterface)
	if !ok {
		return nil
	}
	return w.pendingNamespaces.while(ctx, a, func() error { return validator.Validate(ctx, withNamespaceName(a), o) })
}

// withNamespaceName returns the attributes of a request for a Namespace with the
// Namespace's name as the namespace.
func withNamespaceName(a admission.Attributes) admission.Attributes {
	if a.GetResource().GroupResource() != tenancy.Resource("namespaces") {
		return a
	}
	if a.GetSubresource() == "" && a.GetOperation() != admission.Delete {
		// The plugins take the labels from the object, because the Namespace may
		// be new. With its name, policies would look it up before it exists, and rules
		// with the scope Cluster would not match: the library knows only the Namespaces
		// of core as objects that have a namespace but are not in one.
		return a
	}
	return attributes{a}
}

type attributes struct {
	admission.Attributes
}

func (a attributes) GetNamespace() string { return a.GetName() }
