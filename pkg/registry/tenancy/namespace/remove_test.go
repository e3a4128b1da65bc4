// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// interruptedBy returns a store whose next delete is preceded by the steps of another client.
func (s Storage) interruptedBy(t *testing.T, ctx context.Context, store *genericregistry.Store, others ...step) *genericregistry.Store {
	t.Helper()
	changed := *store
	changed.Storage.Storage = storagetest.BeforeDelete(store.Storage.Storage, func() { s.do(t, ctx, others...) })
	return &changed
}

func (s Storage) do(t *testing.T, ctx context.Context, steps ...step) {
	t.Helper()
	for _, step := range steps {
		if _, err := step(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRemovalByAnOutdatedUpdate lets another client change a Namespace between the update
// that leaves it without finalizers and its removal.
func TestRemovalByAnOutdatedUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		others []step
		// phase and finalizers are those of the Namespace afterwards.
		phase      tenancy.NamespacePhase
		finalizers int
	}{
		"removed and created again": {[]step{update(finalize, specFinalizers()), create("example.com/x")}, tenancy.NamespaceActive, 1},
		"held by another finalizer": {[]step{update(finalize, specFinalizers("example.com/x", "kubernetes"))}, tenancy.NamespaceTerminating, 1},
	} {
		t.Run(name, func(t *testing.T) {
			storage, ctx := newStorage(t), newContext()
			other := storage
			other.do(t, ctx, create(), remove(metav1.DeleteOptions{}))
			storage.Finalize = &FinalizeREST{subresource{other.interruptedBy(t, ctx, other.Finalize.store, test.others...)}}
			removeKubernetes := func(ns *tenancy.Namespace) {
				ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f tenancy.FinalizerName) bool { return f == tenancy.FinalizerKubernetes })
			}
			if _, err := update(finalize, removeKubernetes)(ctx, storage); err != nil {
				t.Fatal(err)
			}
			obj, err := other.Namespace.Get(ctx, "foo", &metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ns := obj.(*tenancy.Namespace)
			if ns.Status.Phase != test.phase || len(ns.Spec.Finalizers) != test.finalizers {
				t.Errorf("got phase %s, finalizers %v", ns.Status.Phase, ns.Spec.Finalizers)
			}
		})
	}
}

// TestRemovalByAnOutdatedDelete lets another client add a finalizer to a Namespace that
// nothing holds, between the read and the removal by a DELETE.
func TestRemovalByAnOutdatedDelete(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	other := storage
	other.do(t, ctx, create(), update(finalize, specFinalizers()))
	storage.Namespace = &REST{store: other.interruptedBy(t, ctx, other.Namespace.store, update(finalize, specFinalizers("example.com/x")))}
	obj, removed, err := storage.Namespace.Delete(ctx, "foo", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ns := obj.(*tenancy.Namespace); removed || ns.Status.Phase != tenancy.NamespaceTerminating {
		t.Errorf("removed: %t, got %+v", removed, ns)
	}
	obj, err = other.Namespace.Get(ctx, "foo", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ns := obj.(*tenancy.Namespace); ns.Status.Phase != tenancy.NamespaceTerminating || len(ns.Spec.Finalizers) != 1 {
		t.Errorf("got phase %s, finalizers %v", ns.Status.Phase, ns.Spec.Finalizers)
	}
}

// TestRemovalWithAMetadataFinalizer lets another client add a finalizer to the metadata of a
// Namespace just before it is removed.
func TestRemovalWithAMetadataFinalizer(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	other := storage
	other.do(t, ctx, create(), update(finalize, specFinalizers()))
	storage.Namespace = &REST{store: other.interruptedBy(t, ctx, other.Namespace.store, update(resource, metadataFinalizers("example.com/x")))}
	if obj, removed, err := storage.Namespace.remove(ctx, "foo", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); removed || err != nil {
		t.Errorf("removed: %t, %v, got %+v", removed, err, obj)
	}
	if _, err := other.Namespace.Get(ctx, "foo", &metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestRemovalByAnotherClient lets another client remove a Namespace that a DELETE has just
// marked. If that client creates it again, the DELETE does not affect the new one.
func TestRemovalByAnotherClient(t *testing.T) {
	for name, others := range map[string][]step{
		"removed":                   {remove(metav1.DeleteOptions{})},
		"removed and created again": {remove(metav1.DeleteOptions{}), create()},
	} {
		t.Run(name, func(t *testing.T) {
			storage, ctx := newStorage(t), newContext()
			other := storage
			other.do(t, ctx, create(), update(finalize, specFinalizers()))
			storage.Namespace = &REST{store: other.interruptedBy(t, ctx, other.Namespace.store, others...)}
			_, removed, err := storage.Namespace.Delete(ctx, "foo", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			if err != nil || !removed {
				t.Errorf("removed: %t, error %v", removed, err)
			}
			obj, err := other.Namespace.Get(ctx, "foo", &metav1.GetOptions{})
			if len(others) == 1 {
				if !apierrors.IsNotFound(err) {
					t.Errorf("got %+v, error %v", obj, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if phase := obj.(*tenancy.Namespace).Status.Phase; phase != tenancy.NamespaceActive {
				t.Errorf("the new namespace is %s", phase)
			}
		})
	}
}

// TestRemovalOfAVersion deletes a Namespace that nothing holds, with its version as a
// precondition. The mark that comes first changes the version.
func TestRemovalOfAVersion(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	storage.do(t, ctx, create(), update(finalize, specFinalizers()))
	obj, err := storage.Namespace.Get(ctx, "foo", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version := obj.(*tenancy.Namespace).ResourceVersion
	storage.do(t, ctx, remove(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}))
	if got := storage.state(t, ctx); got != nil {
		t.Errorf("the Namespace exists: %+v", *got)
	}
}
