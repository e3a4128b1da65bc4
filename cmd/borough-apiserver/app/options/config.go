// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"

	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/tracing"

	"github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/admission/hostplugins"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/pkg/generated/openapi"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
)

// StartEtcd starts the embedded etcd and returns it, or nil when --etcd-servers
// names another. The caller closes it after the server has ended.
func (o *Options) StartEtcd(ctx context.Context) (*embedded.Server, error) {
	if !o.Storage.Embedded() {
		return nil, nil
	}
	return embedded.Start(ctx, embedded.Config{Dir: o.inDataDir("etcd")})
}

// Config returns the config of a server that stores in etcd, or in
// --etcd-servers when etcd is nil. It listens on the port.
func (o *Options) Config(ctx context.Context, etcd *embedded.Server) (*apiserver.Config, error) {
	generic := genericapiserver.NewRecommendedConfig(o.codecs)
	namer := apiopenapi.NewDefinitionNamer(o.scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Borough"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "Borough"

	for _, step := range []struct {
		name  string
		apply func() error
	}{
		{"server", func() error { return o.Server.ApplyTo(&generic.Config) }},
		{"egress selector", func() error { return o.EgressSelector.ApplyTo(&generic.Config) }},
		{"tracing", func() error { return o.Traces.ApplyTo(generic.EgressSelector, &generic.Config) }},
		{"storage", func() error {
			return o.Storage.ApplyTo(&generic.Config, storage.Config{
				Scheme:     o.scheme,
				Embedded:   etcd,
				Namespaces: tenancy.Resource("namespaces"),
				Namespaced: apiserver.Namespaced(),
			})
		}},
		{"serving, authentication and authorization", func() error {
			if o.Standalone {
				return o.applyStandalone(generic)
			}
			return o.applyHosted(ctx, generic)
		}},
		{"auditing", func() error { return o.Audit.ApplyTo(&generic.Config) }},
	} {
		if err := step.apply(); err != nil {
			return nil, fmt.Errorf("set up %s: %w", step.name, err)
		}
	}

	// The server's own client is what admission reads through. The library traces
	// it only where it is there before tracing is set up.
	generic.LoopbackClientConfig.Wrap(tracing.WrapperFor(generic.TracerProvider))
	client, err := versioned.NewForConfig(generic.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("make the client of this server: %w", err)
	}
	informers := externalversions.NewSharedInformerFactory(client, 0)
	if err := o.applyAdmission(generic, client, informers); err != nil {
		return nil, err
	}

	return &apiserver.Config{
		Generic: generic,
		Extra: apiserver.ExtraConfig{
			Scheme:         o.scheme,
			Codecs:         o.codecs,
			Standalone:     o.Standalone,
			HostNamespaces: o.Hosted.Namespaces,
			Client:         client,
			Informers:      informers,
		},
	}, nil
}

// applyAdmission sets up what the library configures by objects of the host
// cluster: flow control and the admission chain, in which our plugins read
// through the client and the informers of this server.
func (o *Options) applyAdmission(generic *genericapiserver.RecommendedConfig, client versioned.Interface, informers externalversions.SharedInformerFactory) error {
	host, hostInformers := generic.ClientConfig, generic.SharedInformerFactory
	if host == nil {
		// Standalone no plugin that reads the host cluster is on, but the library
		// insists on clients. These are never used.
		host = generic.LoopbackClientConfig
	}
	kube, err := kubernetes.NewForConfig(host)
	if err != nil {
		return fmt.Errorf("make the client of the host cluster: %w", err)
	}
	dynamic, err := dynamic.NewForConfig(host)
	if err != nil {
		return fmt.Errorf("make the dynamic client of the host cluster: %w", err)
	}
	if hostInformers == nil {
		hostInformers = kubeinformers.NewSharedInformerFactory(kube, 0)
	}
	if err := o.Features.ApplyTo(&generic.Config, kube, hostInformers); err != nil {
		return fmt.Errorf("set up features: %w", err)
	}
	// Without this, webhooks would be called untraced, and not through the egress
	// selector.
	webhooks := webhookinit.NewPluginInitializer(
		webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, generic.EgressSelector, host, generic.TracerProvider),
		webhook.NewDefaultServiceResolver())
	pluginClient, pluginInformers := hostplugins.WithNamespaces(kube, hostInformers, client, informers.Tenancy().V1().Namespaces())
	err = o.Admission.ApplyTo(&generic.Config, pluginInformers, pluginClient, dynamic, generic.FeatureGate, generic.EffectiveVersion,
		webhooks, admission.NewInitializer(informers, client))
	if err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	return nil
}
