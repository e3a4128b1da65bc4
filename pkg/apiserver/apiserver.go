// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the registries, admission and storage of the
// tenancy.borough.io group into a generic API server.
package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/requestlimits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	limitrange "github.com/borough-io/borough/pkg/registry/tenancy/limitrange/storage"
	namespace "github.com/borough-io/borough/pkg/registry/tenancy/namespace/storage"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacepurge"
	pod "github.com/borough-io/borough/pkg/registry/tenancy/pod/storage"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// Config is the configuration of a server.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	Extra   ExtraConfig
}

// ExtraConfig is what Borough adds to the generic configuration.
type ExtraConfig struct {
	// Scheme and Codecs are those of Generic.
	Scheme *runtime.Scheme
	Codecs serializer.CodecFactory

	// Standalone means that no other server serves the core group: our resources
	// have its short names (ns, limits, po) and the category all, and requests for
	// its namespaces are served from ours.
	Standalone bool

	// ClusterNamespaces is the rule for the cluster's namespace controller.
	ClusterNamespaces ClusterNamespaces

	// Client is a client of this server with all rights.
	Client versioned.Interface
	// Informers are the caches of admission, created from Client. The server starts
	// them.
	Informers externalversions.SharedInformerFactory

	// Unreadable are the stored objects that cannot be read. The storage that
	// Generic was made with takes note of them.
	Unreadable *unreadable.Objects

	// preconditions is the storage.
	preconditions precondition.Checker
}

// connectionGrace bounds how long a shutdown waits for connections to close after
// it was announced on them (HTTP/2 gives the client a second), in addition to the
// requests in flight. A connection that the loopback client opens during the
// shutdown gets no announcement, and would otherwise delay it by the request
// timeout.
const connectionGrace = 2 * time.Second

type completedConfig struct {
	generic genericapiserver.CompletedConfig
	extra   *ExtraConfig
}

// CompletedConfig is returned by Complete.
type CompletedConfig struct {
	*completedConfig
}

// Complete sets fields that can be derived. It changes the receiver.
func (c *Config) Complete() CompletedConfig {
	c.Generic.BuildHandlerChainFunc = c.Extra.handlerChain
	c.Extra.preconditions, _ = c.Generic.RESTOptionsGetter.(precondition.Checker)
	return CompletedConfig{&completedConfig{c.Generic.Complete(), &c.Extra}}
}

// New returns a server that can be prepared and run.
func (c CompletedConfig) New() (*genericapiserver.GenericAPIServer, error) {
	if c.extra.preconditions == nil {
		return nil, errors.New("the storage can't check preconditions of writes")
	}
	server, err := c.generic.New("borough-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make the generic API server: %w", err)
	}
	server.ShutdownTimeout = connectionGrace

	resources, err := c.extra.resources(c.generic.Config)
	if err != nil {
		return nil, err
	}
	if err := checkNamespaced(resources); err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(tenancy.GroupName, c.extra.Scheme, metav1.ParameterCodec, c.extra.Codecs)
	group.NegotiatedSerializer = limitedSerializer{group.NegotiatedSerializer, requestlimits.NewChecker(c.extra.Scheme)}
	group.VersionedResourcesStorageMap[v1.SchemeGroupVersion.Version] = resources
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("install %s: %w", v1.SchemeGroupVersion, err)
	}
	if c.extra.Standalone {
		installEmptyCore(server, c.generic.DiscoveryAddresses, c.extra.Codecs)
	}

	if err := addHooks(server, c.extra, resources); err != nil {
		return nil, err
	}
	return server, nil
}

func (c *ExtraConfig) resources(generic *genericapiserver.Config) (map[string]rest.Storage, error) {
	optsGetter := generic.RESTOptionsGetter
	namespaces, err := namespace.NewStorage(c.Scheme, optsGetter, c.Standalone)
	if err != nil {
		return nil, err
	}
	limitRanges, err := limitrange.NewStorage(c.Scheme, optsGetter, c.Standalone)
	if err != nil {
		return nil, err
	}
	pods, err := pod.NewStorage(c.Scheme, optsGetter, c.Standalone)
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
	content, err := purgedContent(map[string]*genericregistry.Store{"limitranges": limitRanges.LimitRange.Store, "pods": pods.Pod.Store})
	if err != nil {
		return nil, err
	}
	resources["namespacepurges"] = namespacepurge.NewREST(namespacepurge.Config{
		Scheme:     c.Scheme,
		Namespaces: namespaces.Namespace,
		Finalizer:  namespaces.Finalize,
		Authorizer: generic.Authorization.Authorizer,
		Admission:  generic.AdmissionControl,
		Content:    content,
	})
	return resources, nil
}

// purgedContent returns the content of Namespaces for a NamespacePurge: the stores of
// the namespaced resources, by their names.
func purgedContent(stores map[string]*genericregistry.Store) ([]namespacepurge.Content, error) {
	var content []namespacepurge.Content
	for _, kind := range tenancy.NamespacedKinds() {
		store := stores[kind.Resource]
		if store == nil {
			return nil, fmt.Errorf("install namespacepurges: no store for %s", kind.GroupResource())
		}
		content = append(content, namespacepurge.Content{
			Deleter:  deletecollection.Deleter{Store: store},
			Resource: v1.SchemeGroupVersion.WithResource(kind.Resource),
			Kind:     v1.SchemeGroupVersion.WithKind(kind.Kind),
			First:    kind.PurgedFirst,
		})
	}
	return content, nil
}

// checkNamespaced rejects a namespaced resource that is not of a NamespacedKind, and
// one whose name is also a subresource of namespaces: the path
// .../namespaces/NAME/status would be ambiguous.
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
		if _, stored := storage.(rest.Getter); stored && !slices.Contains(tenancy.NamespacedResources(), tenancy.Resource(name)) {
			return fmt.Errorf("install resource %q: it is missing in tenancy.NamespacedKinds", name)
		}
	}
	return nil
}
