// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterplugins

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyinformers "github.com/borough-io/borough/pkg/generated/informers/externalversions/tenancy/v1"
)

// WithNamespaces returns a client and informers for the cluster that read our
// Namespaces, and pending ones, instead of those of the cluster. They cover what the plugins
// use: to get single Namespaces, and the lister.
func WithNamespaces(cluster kubernetes.Interface, clusterInformers informers.SharedInformerFactory, client versioned.Interface, namespaces tenancyinformers.NamespaceInformer, pendingNamespaces *PendingNamespaces) (kubernetes.Interface, informers.SharedInformerFactory) {
	return &clientset{cluster, client, pendingNamespaces}, &factory{clusterInformers, &namespaceLister{namespaces, pendingNamespaces}}
}

func asCore(ns *v1.Namespace) (*corev1.Namespace, error) {
	var own tenancy.Namespace
	if err := v1.Convert_v1_Namespace_To_tenancy_Namespace(ns, &own, nil); err != nil {
		return nil, fmt.Errorf("convert namespace %q: %w", ns.Name, err)
	}
	core := &corev1.Namespace{}
	coregroup.NamespaceFromOwn(&own, core)
	core.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}
	return core, nil
}

type clientset struct {
	kubernetes.Interface
	client            versioned.Interface
	pendingNamespaces *PendingNamespaces
}

func (c *clientset) CoreV1() corev1client.CoreV1Interface {
	return &coreV1{c.Interface.CoreV1(), c.client, c.pendingNamespaces}
}

type coreV1 struct {
	corev1client.CoreV1Interface
	client            versioned.Interface
	pendingNamespaces *PendingNamespaces
}

func (c *coreV1) Namespaces() corev1client.NamespaceInterface {
	return &namespaceClient{c.CoreV1Interface.Namespaces(), c.client, c.pendingNamespaces}
}

type namespaceClient struct {
	corev1client.NamespaceInterface
	client            versioned.Interface
	pendingNamespaces *PendingNamespaces
}

func (c *namespaceClient) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Namespace, error) {
	ns, err := c.client.TenancyV1().Namespaces().Get(ctx, name, options)
	created := c.pendingNamespaces.get(name)
	switch {
	case apierrors.IsNotFound(err) && created != nil:
		return created.Namespace, nil
	case err != nil:
		return nil, err
	case created != nil && created.UID != ns.UID:
		created.exists.Store(true)
	}
	return asCore(ns)
}

type factory struct {
	informers.SharedInformerFactory
	namespaces *namespaceLister
}

// ForResource returns an error, so that the parameters of each policy are read through
// a separate informer, as those of custom kinds are. The informers of the factory
// must have synced before the server is ready, and with a policy whose parameters it
// may not read, the server would never be.
func (f *factory) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("the informer of %s is not shared", resource.GroupResource())
}

func (f *factory) Core() coreinformers.Interface {
	return &coreGroup{f.SharedInformerFactory.Core(), f.namespaces}
}

type coreGroup struct {
	coreinformers.Interface
	namespaces *namespaceLister
}

func (g *coreGroup) V1() corev1informers.Interface {
	return &coreVersion{g.Interface.V1(), g.namespaces}
}

type coreVersion struct {
	corev1informers.Interface
	namespaces *namespaceLister
}

// Namespaces adds the informer to its factory now, which then starts it. Plugins ask for it
// only at their first request.
func (v *coreVersion) Namespaces() corev1informers.TypedNamespaceInformer {
	v.namespaces.informer.Informer()
	return &namespaceInformer{v.Interface.Namespaces(), v.namespaces}
}

// namespaceInformer has an Informer with our type. The plugins only check whether it
// has synced.
type namespaceInformer struct {
	corev1informers.TypedNamespaceInformer
	namespaces *namespaceLister
}

func (i *namespaceInformer) Informer() cache.SharedIndexInformer {
	return i.namespaces.informer.Informer()
}

func (i *namespaceInformer) Lister() corev1listers.NamespaceLister {
	return i.namespaces
}

type namespaceLister struct {
	informer          tenancyinformers.NamespaceInformer
	pendingNamespaces *PendingNamespaces
}

// Get returns a Namespace. While there is a new one of the name, another is NotFound, so
// that the plugins get the Namespace through the client: the informer may still have one
// that was removed.
func (l *namespaceLister) Get(name string) (*corev1.Namespace, error) {
	ns, err := l.informer.Lister().Get(name)
	if err != nil {
		return nil, err
	}
	if created := l.pendingNamespaces.get(name); created != nil && created.UID != ns.UID {
		return nil, apierrors.NewNotFound(v1.Resource("namespaces"), name)
	}
	return asCore(ns)
}

func (l *namespaceLister) List(selector labels.Selector) ([]*corev1.Namespace, error) {
	list, err := l.informer.Lister().List(selector)
	if err != nil {
		return nil, err
	}
	core := make([]*corev1.Namespace, 0, len(list))
	for _, ns := range list {
		converted, err := asCore(ns)
		if err != nil {
			return nil, err
		}
		core = append(core, converted)
	}
	return core, nil
}
