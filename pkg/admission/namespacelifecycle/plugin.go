// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacelifecycle is the admission plugin that rejects content in a
// Namespace that does not exist or is being terminated, and the deletion of the
// Namespaces that a cluster requires.
package namespacelifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	listers "github.com/borough-io/borough/pkg/generated/listers/tenancy/v1"
)

// PluginName is the name of the plugin in flags and configuration. It is the name of
// the library's plugin, which supports only core/v1 and which this one replaces.
const PluginName = "NamespaceLifecycle"

// protected are the Namespaces that cannot be deleted.
var protected = sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic)

var accessReviews = authorizationv1.Resource("localsubjectaccessreviews")

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}, nil
	})
}

// Plugin may accept a request by its cache, but rejects a request only after a read
// from storage.
//
// A Namespace that is not in the cache may just have been created, and one that is
// Terminating in the cache may have been deleted and created again. A Namespace that
// is Active in the cache but not in storage does no harm: storage writes an object
// only in a transaction that checks that its Namespace is still Active. With this
// plugin the request is rejected before any other plugin runs.
type Plugin struct {
	*admission.Handler
	namespaces listers.NamespaceLister
	synced     cache.DoneChecker
	client     versioned.Interface
}

var (
	_ admission.MutationInterface            = &Plugin{}
	_ admission.InitializationValidator      = &Plugin{}
	_ boroughadmission.WantsTenancyInformers = &Plugin{}
	_ boroughadmission.WantsTenancyClient    = &Plugin{}
)

// SetTenancyInformers sets the informer of Namespaces.
func (p *Plugin) SetTenancyInformers(informers externalversions.SharedInformerFactory) {
	informer := informers.Tenancy().V1().Namespaces()
	p.namespaces = informer.Lister()
	p.synced = informer.Informer().HasSyncedChecker()
}

// SetTenancyClient sets the client that reads Namespaces from storage.
func (p *Plugin) SetTenancyClient(client versioned.Interface) { p.client = client }

// ValidateInitialization returns an error if the plugin is not fully initialized.
func (p *Plugin) ValidateInitialization() error {
	if p.namespaces == nil {
		return errors.New("missing the informer of namespaces")
	}
	if p.client == nil {
		return errors.New("missing the client")
	}
	return nil
}

// Admit checks the Namespace of the request. It changes nothing; it is a mutating
// plugin so that it runs before all others.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	// Check the kind and not the namespace of the request: for a Namespace, the
	// namespace is set or not, depending on the path of the request.
	if a.GetKind().GroupKind() == tenancy.Kind("Namespace") {
		if a.GetOperation() == admission.Delete && protected.Has(a.GetName()) {
			return apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), errors.New("this namespace may not be deleted"))
		}
		return nil
	}
	if a.GetNamespace() == "" {
		return nil // cluster-scoped
	}
	if a.GetOperation() == admission.Delete || a.GetResource().GroupResource() == tenancy.Resource("namespacepurges") {
		return nil // the content of a terminating Namespace must be deletable
	}
	if a.GetResource().GroupResource() == accessReviews {
		return nil // users may ask for their rights in any Namespace, as in Kubernetes
	}
	if boroughadmission.IsNewNamespace(ctx, a.GetNamespace()) {
		return nil
	}
	if err := boroughadmission.WaitForSync(ctx, a, p.synced); err != nil {
		return err
	}

	// Existing objects can be updated until they are purged.
	rejects := func(ns *v1.Namespace) bool {
		return a.GetOperation() == admission.Create && ns.Status.Phase == v1.NamespaceTerminating
	}
	ns, err := p.namespaces.Get(a.GetNamespace())
	if err == nil && !rejects(ns) {
		return nil
	}
	ns, err = p.client.TenancyV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case apierrors.IsStoreReadError(err) && a.GetOperation() == admission.Update:
		// The Namespace exists, and an update needs no more than that.
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("look up namespace %s: %w", a.GetNamespace(), err))
	case rejects(ns):
		return tenancyerrors.NewNamespaceTerminating(a.GetResource().GroupResource(), a.GetNamespace(), nameOf(a))
	}
	return nil
}

// nameOf returns the name of the object for an error, or the prefix from which
// storage will generate one.
func nameOf(a admission.Attributes) string {
	var generateName string
	if object, err := meta.Accessor(a.GetObject()); err == nil {
		generateName = object.GetGenerateName()
	}
	return cmp.Or(a.GetName(), generateName, "Unknown")
}
