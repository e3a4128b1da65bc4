// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	listers "github.com/borough-io/borough/pkg/generated/listers/tenancy/v1"
)

// NamespaceCache has the Namespaces that this server knows of.
type NamespaceCache interface {
	// CachedPhase returns the phase of a Namespace, and false if it is not in the cache:
	// it may not exist, or be new, or the server has just started.
	CachedPhase(ctx context.Context, name string) (phase tenancy.NamespacePhase, cached bool)
}

// NewInformerCache returns the cache of an informer. It is for a server without a
// watch cache of Namespaces, which would have all of them twice.
func NewInformerCache(informers externalversions.SharedInformerFactory) NamespaceCache {
	return namespaceInformer{informers.Tenancy().V1().Namespaces().Lister()}
}

type namespaceInformer struct{ listers.NamespaceLister }

// CachedPhase implements NamespaceCache.
func (i namespaceInformer) CachedPhase(_ context.Context, name string) (tenancy.NamespacePhase, bool) {
	ns, err := i.Get(name)
	if err != nil {
		return "", false
	}
	return tenancy.NamespacePhase(ns.Status.Phase), true
}
