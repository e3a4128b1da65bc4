// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacelifecycle is the admission plugin that refuses content in a
// Namespace that does not exist or is being terminated, and the deletion of the
// Namespaces that a cluster can't do without.
package namespacelifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	listers "github.com/borough-io/borough/pkg/generated/listers/tenancy/v1"
)

// PluginName is the name of the plugin in flags and configuration. It is that of
// the library's plugin, which knows only core/v1 and which this one replaces.
const PluginName = "NamespaceLifecycle"

// The Namespaces that may not be deleted.
var protected = sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic)

// Register adds the plugin to those that can be enabled.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}, nil
	})
}

// Plugin takes a yes from the cache, but never a no.
//
// A Namespace that the cache does not know may just have been created, and one
// that it holds for Terminating may be gone and created again, so both are read
// from storage before a request is refused. That the cache holds for Active what
// no longer is does no harm: storage writes an object only together with a check
// that its Namespace is still Active. What this plugin adds to that check is the
// answer before any other plugin has run.
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

// SetTenancyInformers makes the plugin read from the informer of Namespaces.
func (p *Plugin) SetTenancyInformers(informers externalversions.SharedInformerFactory) {
	informer := informers.Tenancy().V1().Namespaces()
	p.namespaces = informer.Lister()
	p.synced = informer.Informer().HasSyncedChecker()
}

// SetTenancyClient makes the plugin look up with the client what is not cached.
func (p *Plugin) SetTenancyClient(client versioned.Interface) { p.client = client }

// ValidateInitialization says what the plugin has not been given.
func (p *Plugin) ValidateInitialization() error {
	if p.namespaces == nil {
		return errors.New("missing the informer of namespaces")
	}
	if p.client == nil {
		return errors.New("missing the client")
	}
	return nil
}

// Admit decides by the Namespace of the request. It changes nothing; it is a
// mutating plugin so that it comes before all the others.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	// By kind, and not by the namespace of the request: whether a Namespace
	// counts as being in itself depends on how it is addressed.
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
		return nil // a terminating Namespace has to become empty
	}
	if err := boroughadmission.WaitForSync(ctx, a, p.synced); err != nil {
		return err
	}

	// What exists can be updated until it is purged.
	refused := func(ns *v1.Namespace) bool {
		return a.GetOperation() == admission.Create && ns.Status.Phase == v1.NamespaceTerminating
	}
	ns, err := p.namespaces.Get(a.GetNamespace())
	if err == nil && !refused(ns) {
		return nil
	}
	ns, err = p.client.TenancyV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("look up namespace %s: %w", a.GetNamespace(), err))
	case refused(ns):
		return terminating(a)
	}
	return nil
}

// terminating is the 403 by which clients know that a Namespace goes away: the
// garbage collector and controllers look for its cause, not for its text.
func terminating(a admission.Attributes) error {
	err := admission.NewForbidden(a, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.GetNamespace()))
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    v1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", a.GetNamespace()),
			Field:   "metadata.namespace",
		})
	}
	return err
}
