// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/admission/clusterplugins"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/pkg/generated/openapi"
	"github.com/borough-io/borough/pkg/loopback"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// Config returns the config of a server that uses the dependencies. It reads files
// and, in a cluster, objects of the cluster; it creates none, and opens no port.
func (o *Options) Config(deps *Dependencies) (*apiserver.Config, error) {
	generic := o.newGenericConfig()
	generic.AuditBackend, generic.AuditPolicyRuleEvaluator = deps.auditBackend, deps.auditPolicy

	unread := unreadable.NewObjects()
	storageConfig := storage.Config{
		Scheme:     o.scheme,
		Embedded:   deps.etcd,
		Namespaced: tenancy.GroupResources(tenancy.NamespacedKinds()),
		Unreadable: unread,
	}
	self := &loopback.Transport{}
	generic.LoopbackClientConfig = self.ClientConfig()
	var standalone *apiserver.StandaloneConfig
	if o.Standalone {
		standalone = o.newStandaloneConfig()
		addStandalone(&storageConfig, standalone)
	}
	var projects *apiserver.ClusterProjects
	if o.Cluster.ServeProjects {
		projects = newClusterProjects(&storageConfig)
	}
	var backend *storage.Backend
	for _, step := range []struct {
		name  string
		apply func() error
	}{
		{"server", func() error { return o.Server.ApplyTo(&generic.Config) }},
		{"egress selector", func() error { return o.EgressSelector.ApplyTo(&generic.Config) }},
		{"tracing", func() error { return o.applyTracing(&generic.Config) }},
		{"storage", func() (err error) {
			backend, err = o.Storage.ApplyTo(&generic.Config, storageConfig)
			return err
		}},
		{"serving", func() error { return deps.applyServing(&generic.Config) }},
		{"authentication and authorization", func() error {
			if o.Standalone {
				return o.applyStandalone(generic, deps.pki, standalone)
			}
			return o.applyInCluster(generic, deps.cluster, projects)
		}},
	} {
		if err := step.apply(); err != nil {
			return nil, fmt.Errorf("set up %s: %w", step.name, err)
		}
	}

	// Admission reads through the loopback client, also for requests that are in flight when
	// the server shuts down: the library then refuses all requests but those of this agent.
	loopback := rest.CopyConfig(generic.LoopbackClientConfig)
	loopback.UserAgent = "kube-apiserver/borough"
	client, err := versioned.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("create the loopback client: %w", err)
	}
	informers := externalversions.NewSharedInformerFactory(client, 0)
	if err := o.applyAdmission(generic, backend, client, informers, unread); err != nil {
		return nil, err
	}

	return &apiserver.Config{
		Generic: generic,
		Extra: apiserver.ExtraConfig{
			Scheme:            o.scheme,
			Codecs:            o.codecs,
			Standalone:        standalone,
			Projects:          projects,
			ClusterNamespaces: o.Cluster.Namespaces,
			Loopback:          self,
			Client:            client,
			Informers:         informers,
			Storage:           backend,
			Unreadable:        unread,
		},
	}, nil
}

// newGenericConfig returns the library's config with the OpenAPI definitions and the
// flags.
func (o *Options) newGenericConfig() *genericapiserver.RecommendedConfig {
	generic := genericapiserver.NewRecommendedConfig(o.codecs)
	generic.Flagz = o.flagz
	namer := apiopenapi.NewDefinitionNamer(o.scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Borough"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "Borough"
	generic.OpenAPIConfig.GetDefinitionName = withoutInternal(generic.OpenAPIConfig.GetDefinitionName)
	generic.OpenAPIV3Config.GetDefinitionName = withoutInternal(generic.OpenAPIV3Config.GetDefinitionName)
	return generic
}

// withoutInternal removes the internal version from the kinds of OpenAPI definitions; some
// types are registered in it, too.
func withoutInternal(name func(string) (string, spec.Extensions)) func(string) (string, spec.Extensions) {
	const key = "x-kubernetes-group-version-kind"
	return func(goName string) (string, spec.Extensions) {
		definition, extensions := name(goName)
		kinds, ok := extensions[key].([]any)
		if !ok {
			return definition, extensions
		}
		external := slices.DeleteFunc(slices.Clone(kinds), func(kind any) bool {
			fields, ok := kind.(map[string]any)
			return ok && fields["version"] == runtime.APIVersionInternal
		})
		extensions = maps.Clone(extensions)
		extensions[key] = external
		return definition, extensions
	}
}

// applyServing sets up the port. A server that keeps its certificate in a Secret is
// ready when it serves that certificate.
func (d *Dependencies) applyServing(generic *genericapiserver.Config) error {
	if d.rotator != nil {
		generic.AddReadyzChecks(healthz.NamedCheck("serving-certificate", func(*http.Request) error { return d.rotator.Ready() }))
	}
	return d.serving.ApplyTo(&generic.SecureServing)
}

// applyAdmission sets up what objects of the cluster configure: flow control and
// the admission chain. Our own plugins in the chain read through the client and
// the informers of this server.
func (o *Options) applyAdmission(generic *genericapiserver.RecommendedConfig, backend *storage.Backend, client versioned.Interface, informers externalversions.SharedInformerFactory, unread *unreadable.Objects) error {
	cluster, clusterInformers := generic.ClientConfig, generic.SharedInformerFactory
	if cluster == nil {
		// With --standalone no plugin that reads the cluster is enabled, but the
		// library requires clients. They are never used.
		cluster = generic.LoopbackClientConfig
	}
	// As in kube-apiserver: a policy reads parameters that are not in the cache for each write,
	// which a limit of the client would reject. The cluster's flow control limits these requests.
	cluster = rest.CopyConfig(cluster)
	cluster.QPS = -1
	kube, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("create the client for the cluster: %w", err)
	}
	dynamic, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("create the dynamic client for the cluster: %w", err)
	}
	if clusterInformers == nil {
		clusterInformers = kubeinformers.NewSharedInformerFactory(kube, 0)
	}
	if err := o.Features.ApplyTo(&generic.Config, kube, clusterInformers); err != nil {
		return fmt.Errorf("set up features: %w", err)
	}
	// Without this, calls of webhooks would not be traced and would bypass the
	// egress selector.
	webhooks := webhookinit.NewPluginInitializer(
		webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, generic.EgressSelector, cluster, generic.TracerProvider),
		webhook.NewDefaultServiceResolver())
	pluginClient, pluginInformers := clusterplugins.WithNamespaces(clusterplugins.WithModels(kube, generic.OpenAPIV3Config), clusterInformers, client, informers.Tenancy().V1().Namespaces(), o.pendingNamespaces)
	namespaces, err := namespaceCache(backend, informers)
	if err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	err = o.Admission.ApplyTo(&generic.Config, pluginInformers, pluginClient, dynamic, generic.FeatureGate, generic.EffectiveVersion,
		webhooks, &admission.Initializer{Informers: informers, Client: client, Namespaces: namespaces, Quotas: backend, Unreadable: unread.In})
	if err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	return nil
}

// namespaceCache returns the watch cache of Namespaces or, if there is none, that of an
// informer.
func namespaceCache(backend *storage.Backend, informers externalversions.SharedInformerFactory) (admission.NamespaceCache, error) {
	if cached, err := backend.CachesNamespaces(); err != nil || cached {
		return backend, err
	}
	return admission.NewInformerCache(informers), nil
}
