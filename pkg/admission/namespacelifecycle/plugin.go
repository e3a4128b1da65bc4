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

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
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
	cache  boroughadmission.NamespaceCache
	client versioned.Interface
}

var (
	_ admission.MutationInterface          = &Plugin{}
	_ admission.InitializationValidator    = &Plugin{}
	_ boroughadmission.WantsNamespaceCache = &Plugin{}
	_ boroughadmission.WantsTenancyClient  = &Plugin{}
)

// SetNamespaceCache sets the cache of Namespaces.
func (p *Plugin) SetNamespaceCache(cache boroughadmission.NamespaceCache) { p.cache = cache }

// SetTenancyClient sets the client that reads Namespaces from storage.
func (p *Plugin) SetTenancyClient(client versioned.Interface) { p.client = client }

// ValidateInitialization returns an error if the plugin is not fully initialized.
func (p *Plugin) ValidateInitialization() error {
	if p.cache == nil {
		return errors.New("missing the cache of namespaces")
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
	if boroughadmission.IsPendingNamespace(ctx, a.GetNamespace()) {
		return nil
	}

	// Existing objects can be updated until they are purged.
	rejects := func(phase tenancy.NamespacePhase) bool {
		return phase == tenancy.NamespaceTerminating && a.GetOperation() == admission.Create
	}
	if phase, cached := p.cache.CachedPhase(ctx, a.GetNamespace()); cached && !rejects(phase) {
		return nil
	}
	ns, err := p.client.TenancyV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case apierrors.IsStoreReadError(err) && a.GetOperation() == admission.Update:
		// The Namespace exists, and an update needs no more than that.
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("look up namespace %s: %w", a.GetNamespace(), err))
	case rejects(tenancy.NamespacePhase(ns.Status.Phase)):
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
