// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterplugins

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// PendingNamespaces are Namespaces that do not exist yet, while the plugins are asked about
// an object that is created in one transaction with its Namespace. The plugins look the
// Namespace up by its name, without the context of the request.
type PendingNamespaces struct {
	mu sync.Mutex
	// byName has one Namespace for each name: a second one waits. Only one of the two
	// can be created.
	byName map[string]*pendingNamespace
}

type pendingNamespace struct {
	*corev1.Namespace
	// exists is set when another Namespace of the name is found.
	exists atomic.Bool
	done   chan struct{}
}

// NewPendingNamespaces returns empty PendingNamespaces.
func NewPendingNamespaces() *PendingNamespaces {
	return &PendingNamespaces{byName: map[string]*pendingNamespace{}}
}

// while makes the pending Namespace in the context, if there is one, known while it calls ask.
// It returns an error if another one of the name exists: that may be removed before the
// new one is created, and the plugins have seen its labels.
func (n *PendingNamespaces) while(ctx context.Context, a admission.Attributes, ask func() error) error {
	if !boroughadmission.IsPendingNamespace(ctx, a.GetNamespace()) {
		return ask()
	}
	added, err := n.add(ctx)
	if err != nil {
		return err
	}
	defer n.remove(added)
	err = ask()
	if added.exists.Load() {
		return apierrors.NewServerTimeout(tenancy.Resource("namespaces"), "create", 1)
	}
	return err
}

// add makes the new Namespace in the context known.
func (n *PendingNamespaces) add(ctx context.Context) (*pendingNamespace, error) {
	added := &pendingNamespace{done: make(chan struct{}), Namespace: &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: *boroughadmission.PendingNamespaceFrom(ctx),
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}}
	for {
		n.mu.Lock()
		other := n.byName[added.Name]
		if other == nil {
			n.byName[added.Name] = added
			n.mu.Unlock()
			return added, nil
		}
		n.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (n *PendingNamespaces) remove(ns *pendingNamespace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.byName, ns.Name)
	close(ns.done)
}

// get returns a Namespace, or nil.
func (n *PendingNamespaces) get(name string) *pendingNamespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byName[name]
}
