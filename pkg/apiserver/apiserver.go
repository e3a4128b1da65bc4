// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the registries, admission and storage of the
// tenancy.borough.io group into a generic API server.
package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/kubernetes"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/clusternamespaces"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/pkg/loopback"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/tenancy/limitrange"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacepurge"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
	"github.com/borough-io/borough/pkg/registry/tenancy/project"
	"github.com/borough-io/borough/pkg/registry/tenancy/resourcequota"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/unreadable"
	"github.com/borough-io/borough/pkg/visibility"
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

	// Standalone is nil in a cluster. On a standalone server no other one serves the
	// core group: our resources have its short names (ns, limits, po) and the category
	// all, and requests for its namespaces are served from ours.
	Standalone *StandaloneConfig

	// Projects serves projects by the policy of a cluster. It may be nil, and is on a
	// standalone server.
	Projects *ClusterProjects

	// ClusterNamespaces is the rule for the cluster's namespace controller.
	ClusterNamespaces clusternamespaces.Config

	// Loopback is the transport of LoopbackClientConfig of Generic. The server gives it
	// its handler.
	Loopback *loopback.Transport
	// Client is a client of this server with all rights.
	Client versioned.Interface
	// Informers are the caches of admission, created from Client. The server starts
	// them.
	Informers externalversions.SharedInformerFactory

	// Storage is the RESTOptionsGetter of Generic.
	Storage *storage.Backend
	// Unreadable are the stored objects that cannot be read. Storage takes note of them.
	Unreadable *unreadable.Objects

	// AfterStart runs when the server may be ready, until the context ends. It may be nil.
	AfterStart func(context.Context)

	// limits checks the bodies of requests.
	limits *requestlimits.Checker
}

// connectionGrace bounds how long a shutdown waits for connections to close after
// it was announced on them (HTTP/2 gives the client a second), in addition to the
// requests in flight. A connection that is opened in the instant of the shutdown gets
// no announcement, and would otherwise delay it by the request timeout.
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
	c.Extra.limits = requestlimits.NewChecker(c.Extra.Scheme)
	if c.Extra.Standalone != nil {
		c.Generic.AdmissionControl = oneGroup{c.Generic.AdmissionControl}
		c.Generic.EquivalentResourceRegistry = equivalentResources()
		c.Generic.EffectiveVersion = kubernetesVersion{c.Generic.EffectiveVersion}
		linkModels(c.Generic.OpenAPIV3Config.Definitions)
	}
	return CompletedConfig{&completedConfig{c.Generic.Complete(), &c.Extra}}
}

// New returns a server that can be prepared and run.
func (c CompletedConfig) New() (*genericapiserver.GenericAPIServer, error) {
	// A path that does not exist gets the same response as in Kubernetes. The default is a list
	// of the paths that do.
	notFound := genericapiserver.NewEmptyDelegateWithCustomHandler(http.NotFoundHandler())
	server, err := c.generic.New("borough-apiserver", notFound)
	if err != nil {
		return nil, fmt.Errorf("make the generic API server: %w", err)
	}
	server.ShutdownTimeout = connectionGrace
	c.extra.Loopback.Serve(server.Handler)

	var ofKubernetes kubernetesStorage
	if s := c.extra.Standalone; s != nil {
		if ofKubernetes, err = s.newStorage(c.extra.Scheme, c.extra.Storage, c.generic.Authorization.Authorizer); err != nil {
			return nil, err
		}
	}
	resources, err := c.extra.resources(c.generic.Config, ofKubernetes)
	if err != nil {
		return nil, err
	}
	groups, work := []apiGroup{{tenancy.GroupName, resources}}, c.extra.work()
	if s := c.extra.Standalone; s != nil {
		installNoCustomResources(server)
		core := coreResources(resources)
		core["events"] = ofKubernetes.events
		groups = append(groups, apiGroup{coregroup.GroupName, core})
		groups, work = append(groups, s.groups(server.Authorizer, ofKubernetes)...), append(s.work(c.generic.DrainedNotify()), work...)
	}
	if p := c.extra.Projects; p != nil {
		work = append(work, p.work(c.generic.DrainedNotify())...)
	}
	for _, group := range groups {
		if err := c.extra.install(server, group); err != nil {
			return nil, err
		}
	}
	limitLabels(server, groups)
	if err := addHooks(server, groups, work, c.extra.AfterStart); err != nil {
		return nil, err
	}
	return server, nil
}

// apiGroup is version v1 of an API group.
type apiGroup struct {
	name      string
	resources map[string]rest.Storage
}

// install serves a group.
func (c *ExtraConfig) install(server *genericapiserver.GenericAPIServer, group apiGroup) error {
	if err := c.checkNamespaced(group.name, group.resources); err != nil {
		return err
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(group.name, c.Scheme, metav1.ParameterCodec, c.Codecs)
	info.NegotiatedSerializer = c.serializer(group.name, info.NegotiatedSerializer)
	info.VersionedResourcesStorageMap[version] = group.resources
	installGroup := server.InstallAPIGroup
	if group.name == coregroup.GroupName {
		installGroup = func(info *genericapiserver.APIGroupInfo) error {
			return server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, info)
		}
	}
	if err := installGroup(&info); err != nil {
		return fmt.Errorf("install the group %s: %w", group.name, err)
	}
	return nil
}

// serializer returns the serializer of a group, given that of the library.
func (c *ExtraConfig) serializer(group string, library runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	ours := listSerializer{limitedSerializer{library, c.limits}}
	if group == tenancy.GroupName {
		return ours
	}
	return coreSerializer{ours}
}

// version is that of all groups.
const version = "v1"

// namespacedKinds returns the kinds of objects that are stored in Namespaces.
func (c *ExtraConfig) namespacedKinds() []tenancy.NamespacedKind {
	kinds := tenancy.NamespacedKinds()
	if c.Standalone != nil {
		kinds = append(kinds, kubernetes.NamespacedKinds()...)
	}
	return kinds
}

// resources returns the storage of the resources of our group.
func (c *ExtraConfig) resources(generic *genericapiserver.Config, ofKubernetes kubernetesStorage) (map[string]rest.Storage, error) {
	var views *visibility.Views
	if c.Standalone != nil {
		views = c.Standalone.Views
	}
	limitRanges, err := limitrange.NewREST(c.Scheme, c.Storage)
	if err != nil {
		return nil, err
	}
	quotas, err := resourcequota.NewREST(c.Scheme, c.Storage)
	if err != nil {
		return nil, err
	}
	pods, err := pod.NewStorage(c.Scheme, c.Storage)
	if err != nil {
		return nil, err
	}
	createConfig, err := c.newCreateConfig(generic)
	if err != nil {
		return nil, err
	}
	templates, err := c.newTemplates(ofKubernetes.rights)
	if err != nil {
		return nil, err
	}
	creator, err := c.newContent(createConfig, templates, limitRanges, quotas, ofKubernetes.rights.RoleBindings)
	if err != nil {
		return nil, err
	}
	namespaces, err := namespace.NewStorage(c.Scheme, c.Storage, views, creator)
	if err != nil {
		return nil, err
	}
	resources := map[string]rest.Storage{
		"namespaces":          namespaces.Namespace,
		"namespaces/status":   namespaces.Status,
		"namespaces/finalize": namespaces.Finalize,

		"namespacetemplates": templates,

		"limitranges": limitRanges,

		"resourcequotas": quotas,

		"pods":                     pods.Pod,
		"pods/status":              pods.Status,
		"pods/binding":             pods.Binding,
		"pods/resize":              pods.Resize,
		"pods/ephemeralcontainers": pods.EphemeralContainers,
	}
	stores := map[string]*genericregistry.Store{
		"limitranges":    limitRanges.Store,
		"pods":           pods.Pod.Store,
		"resourcequotas": quotas.Store,
	}
	if c.Standalone != nil {
		stores["roles"], stores["rolebindings"] = ofKubernetes.rights.Roles.Store, ofKubernetes.rights.RoleBindings.Store
		stores["events"], stores["leases"] = ofKubernetes.events.Store, ofKubernetes.leases.Store
	}
	if resources["namespacepurges"], err = c.newNamespacePurges(generic, namespaces, stores); err != nil {
		return nil, err
	}
	if c.Projects != nil {
		resources["projects"] = project.NewREST(c.Projects.Views.Views, nil)
	}
	if c.Standalone != nil {
		resources["projects"] = project.NewREST(c.Standalone.Views, c.Standalone.Policy)
		if resources["namespacerequests"], err = c.newNamespaceRequests(createConfig, namespaces.Namespace, ofKubernetes.rights.RoleBindings.Store); err != nil {
			return nil, err
		}
	}
	return resources, nil
}

// newNamespacePurges returns the storage of namespacepurges. A purge deletes what is in the
// stores of the namespaced resources, by their names.
func (c *ExtraConfig) newNamespacePurges(generic *genericapiserver.Config, namespaces namespace.Storage, stores map[string]*genericregistry.Store) (rest.Storage, error) {
	var purged []namespacepurge.Content
	for _, kind := range c.namespacedKinds() {
		store := stores[kind.Resource]
		if store == nil {
			return nil, fmt.Errorf("install namespacepurges: no store for %s", kind.GroupResource())
		}
		purged = append(purged, namespacepurge.Content{
			Deleter:  deletecollection.Deleter{Store: store},
			Resource: kind.GroupResource().WithVersion(version),
			Kind:     schema.GroupVersionKind{Group: kind.Group, Version: version, Kind: kind.Kind},
			Stage:    kind.PurgeStage,
		})
	}
	return namespacepurge.NewREST(namespacepurge.Config{
		Scheme:     c.Scheme,
		Namespaces: namespaces.Namespace,
		Finalizer:  namespaces.Finalize,
		Authorizer: generic.Authorization.Authorizer,
		Admission:  generic.AdmissionControl,
		Content:    purged,
		Unreadable: c.Unreadable,
	}), nil
}

// checkNamespaced rejects a namespaced resource that is not of a namespaced kind, and
// one whose name is also a subresource of namespaces: the path
// .../namespaces/NAME/status would be ambiguous.
func (c *ExtraConfig) checkNamespaced(group string, resources map[string]rest.Storage) error {
	namespaced := tenancy.GroupResources(c.namespacedKinds())
	for name, storage := range resources {
		scoper, ok := storage.(rest.Scoper)
		if !ok || !scoper.NamespaceScoped() || strings.Contains(name, "/") {
			continue
		}
		if _, taken := resources["namespaces/"+name]; taken {
			return fmt.Errorf("install resource %q: namespaces has a subresource of that name", name)
		}
		// What can't be got is not stored: namespacepurges have no keys to fence in.
		gr := kubernetes.StoredResource(schema.GroupResource{Group: coregroup.OwnGroup(group, name), Resource: name})
		if _, stored := storage.(rest.Getter); stored && !slices.Contains(namespaced, gr) {
			return fmt.Errorf("install resource %q: it is missing in the namespaced kinds", gr)
		}
	}
	return nil
}
