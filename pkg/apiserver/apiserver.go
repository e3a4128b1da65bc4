// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver puts the registries of the tenancy.borough.io group
// together into a generic API server.
package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	limitrange "github.com/borough-io/borough/pkg/registry/tenancy/limitrange/storage"
	namespace "github.com/borough-io/borough/pkg/registry/tenancy/namespace/storage"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacepurge"
	pod "github.com/borough-io/borough/pkg/registry/tenancy/pod/storage"
)

// Config is all that a server is made from.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	Extra   ExtraConfig
}

// ExtraConfig is what Borough adds to the generic configuration.
type ExtraConfig struct {
	// Scheme and Codecs are those that Generic was made with.
	Scheme *runtime.Scheme
	Codecs serializer.CodecFactory

	// Standalone says that there is no core group beside ours: the kinds have its
	// short names (ns, limits, po) and the category all, and what clients ask of
	// its Namespaces is answered from ours.
	Standalone bool

	// HostNamespaces is the rule for the host's namespace controller.
	HostNamespaces HostNamespaces

	// Client talks to this very server, with all rights.
	Client versioned.Interface
	// Informers are what admission reads from. They are made from Client, and
	// the server starts them.
	Informers externalversions.SharedInformerFactory
}

// connectionGrace bounds how long a stop waits for connections to close after
// it was announced on them (HTTP/2 leaves the client a second); requests in
// flight are waited for besides. A connection that the loopback client opens in
// the very instant of a stop is told nothing, and would hold it up for as long
// as a request may take.
const connectionGrace = 2 * time.Second

type completedConfig struct {
	generic genericapiserver.CompletedConfig
	extra   *ExtraConfig
}

// CompletedConfig can only be had from Complete.
type CompletedConfig struct {
	*completedConfig
}

// Complete fills in what can be derived. It changes the receiver.
func (c *Config) Complete() CompletedConfig {
	c.Generic.BuildHandlerChainFunc = c.Extra.handlerChain
	return CompletedConfig{&completedConfig{c.Generic.Complete(), &c.Extra}}
}

// New returns a server that is ready to be prepared and run.
func (c CompletedConfig) New() (*genericapiserver.GenericAPIServer, error) {
	server, err := c.generic.New("borough-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make the generic API server: %w", err)
	}
	server.ShutdownTimeout = connectionGrace

	resources, err := c.extra.resources(c.generic.RESTOptionsGetter, c.generic.AdmissionControl)
	if err != nil {
		return nil, err
	}
	if err := checkNamespaced(resources); err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(tenancy.GroupName, c.extra.Scheme, metav1.ParameterCodec, c.extra.Codecs)
	group.VersionedResourcesStorageMap[v1.SchemeGroupVersion.Version] = resources
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("install %s: %w", v1.SchemeGroupVersion, err)
	}
	if c.extra.Standalone {
		installEmptyCore(server, c.generic.DiscoveryAddresses, c.extra.Codecs)
	}

	if err := addHooks(server, c.extra); err != nil {
		return nil, err
	}
	return server, nil
}

func (c *ExtraConfig) resources(optsGetter generic.RESTOptionsGetter, admit admission.Interface) (map[string]rest.Storage, error) {
	namespaces, err := namespace.NewStorage(c.Scheme, optsGetter, c.Standalone)
	if err != nil {
		return nil, err
	}
	limitRanges, err := limitrange.NewStorage(c.Scheme, optsGetter, namespaces.Namespace, c.Standalone)
	if err != nil {
		return nil, err
	}
	pods, err := pod.NewStorage(c.Scheme, optsGetter, namespaces.Namespace, c.Standalone)
	if err != nil {
		return nil, err
	}
	resources := map[string]rest.Storage{
		"namespaces":          namespaces.Namespace,
		"namespaces/status":   namespaces.Status,
		"namespaces/finalize": namespaces.Finalize,

		"limitranges": limitRanges.LimitRange,

		"pods":                     pods.Pod,
		"pods/status":              pods.Status,
		"pods/binding":             pods.Binding,
		"pods/resize":              pods.Resize,
		"pods/ephemeralcontainers": pods.EphemeralContainers,
	}
	content, err := c.content(resources)
	if err != nil {
		return nil, err
	}
	resources["namespacepurges"] = namespacepurge.NewREST(c.Scheme, admit, content)
	return resources, nil
}

// content returns how a NamespacePurge clears each of the namespaced resources.
func (c *ExtraConfig) content(resources map[string]rest.Storage) ([]namespacepurge.Content, error) {
	var content []namespacepurge.Content
	for _, gr := range Namespaced() {
		clearer, ok := resources[gr.Resource].(namespacepurge.Clearer)
		if !ok {
			return nil, fmt.Errorf("install namespacepurges: there is no way to clear %s", gr)
		}
		kinds, _, err := c.Scheme.ObjectKinds(resources[gr.Resource].New())
		if err != nil {
			return nil, fmt.Errorf("install namespacepurges: find the kind of %s: %w", gr, err)
		}
		content = append(content, namespacepurge.Content{
			Clearer:  clearer,
			Resource: gr.WithVersion(v1.SchemeGroupVersion.Version),
			Kind:     v1.SchemeGroupVersion.WithKind(kinds[0].Kind),
		})
	}
	return content, nil
}

// Namespaced are the resources whose objects live in a Namespace. Storage
// fences them in, and a NamespacePurge clears them in this order: Pods first, as
// the controller does.
func Namespaced() []schema.GroupResource {
	return []schema.GroupResource{tenancy.Resource("pods"), tenancy.Resource("limitranges")}
}

// checkNamespaced refuses a namespaced resource that storage knows nothing of,
// and one whose name is also a subresource of namespaces: the path
// .../namespaces/NAME/status could then mean two things.
func checkNamespaced(resources map[string]rest.Storage) error {
	for name, storage := range resources {
		scoper, ok := storage.(rest.Scoper)
		if !ok || !scoper.NamespaceScoped() || strings.Contains(name, "/") {
			continue
		}
		if _, taken := resources["namespaces/"+name]; taken {
			return fmt.Errorf("install resource %q: namespaces has a subresource of that name", name)
		}
		// What can't be got is not stored: namespacepurges have no keys to fence in.
		if _, stored := storage.(rest.Getter); stored && !slices.Contains(Namespaced(), tenancy.Resource(name)) {
			return fmt.Errorf("install resource %q: it is not among the namespaced resources that storage fences in", name)
		}
	}
	return nil
}
