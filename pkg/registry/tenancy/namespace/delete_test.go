// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestProtectionRaces protects a Namespace while it is being deleted. The second of
// the two requests fails.
func TestProtectionRaces(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	var deletes, updates int
	for round := range 60 {
		ns, err := create()(ctx, storage)
		if err != nil {
			t.Fatal(err)
		}
		var deleted, updated error
		var both sync.WaitGroup
		both.Go(func() {
			_, deleted = remove(metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})(ctx, storage)
		})
		both.Go(func() { _, updated = update(resource, protected(true))(ctx, storage) })
		both.Wait()

		switch {
		case deleted == nil && apierrors.IsInvalid(updated):
			deletes++
		case updated == nil && apierrors.IsConflict(deleted) && apierrors.HasStatusCause(deleted, v1.NamespaceProtectedCause):
			updates++
		default:
			t.Fatalf("round %d: delete: %v, update: %v", round, deleted, updated)
		}
		// Away with it, for the next round.
		key, err := storage.Namespace.store.KeyFunc(ctx, "foo")
		if err != nil {
			t.Fatal(err)
		}
		if err := storage.Namespace.store.Storage.Delete(ctx, key, ns, nil, rest.ValidateAllObjectFunc, false, nil, apistorage.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the delete came first %d times, the protection %d times", deletes, updates)
}

// TestAdmissionSeesTheFirstDelete rejects the first step and checks that nothing
// was written.
func TestAdmissionSeesTheFirstDelete(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	if _, err := create()(ctx, storage); err != nil {
		t.Fatal(err)
	}
	rejected := apierrors.NewForbidden(tenancy.Resource("namespaces"), "foo", nil)
	_, _, err := storage.Namespace.Delete(ctx, "foo", func(context.Context, runtime.Object) error { return rejected }, &metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if got := storage.state(t, ctx); got == nil || got.Deleting {
		t.Errorf("got %+v", got)
	}
}

// staleStorage is a storage whose cache has an old state of a Namespace, or none.
type staleStorage struct {
	apistorage.Interface
	cached *tenancy.Namespace
}

func (s *staleStorage) Get(ctx context.Context, key string, options apistorage.GetOptions, out runtime.Object) error {
	if options.ResourceVersion != "0" {
		return s.Interface.Get(ctx, key, options, out)
	}
	if s.cached == nil {
		return apistorage.NewKeyNotFoundError(key, 0)
	}
	s.cached.DeepCopyInto(out.(*tenancy.Namespace))
	return nil
}

// TestDeleteWithStaleCache deletes a Namespace, of which the cache has another state.
// The result is as without a cache.
func TestDeleteWithStaleCache(t *testing.T) {
	for _, tc := range []struct {
		name    string
		stale   func(now *tenancy.Namespace) *tenancy.Namespace
		options func(now *tenancy.Namespace) *metav1.DeleteOptions
		protect bool
		want    func(error) bool // nil if the Namespace is to be Terminating
	}{
		{name: "not in the cache", stale: func(*tenancy.Namespace) *tenancy.Namespace { return nil }},
		{name: "created again", stale: func(now *tenancy.Namespace) *tenancy.Namespace {
			now.UID = "of the one before"
			return now
		}},
		{name: "created again, was Terminating", stale: func(now *tenancy.Namespace) *tenancy.Namespace {
			now.UID, now.DeletionTimestamp = "of the one before", new(metav1.Now())
			return now
		}},
		{name: "precondition that the cached state does not meet", stale: func(now *tenancy.Namespace) *tenancy.Namespace {
			now.ResourceVersion = "1"
			return now
		}, options: func(now *tenancy.Namespace) *metav1.DeleteOptions {
			return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &now.ResourceVersion}}
		}},
		{name: "version that only the cached state has", stale: func(now *tenancy.Namespace) *tenancy.Namespace {
			now.ResourceVersion = "1"
			return now
		}, options: func(*tenancy.Namespace) *metav1.DeleteOptions {
			return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}}
		}, want: apierrors.IsConflict},
		{name: "precondition that only the cached state meets", stale: func(now *tenancy.Namespace) *tenancy.Namespace {
			now.UID = "of the one before"
			return now
		}, options: func(*tenancy.Namespace) *metav1.DeleteOptions {
			return metav1.NewPreconditionDeleteOptions("of the one before")
		}, want: apierrors.IsConflict},
		{name: "protected since", protect: true, stale: func(now *tenancy.Namespace) *tenancy.Namespace {
			now.Spec.DeletionProtection, now.ResourceVersion = false, "1"
			return now
		}, want: func(err error) bool { return apierrors.HasStatusCause(err, v1.NamespaceProtectedCause) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			namespaces, ctx := newStorage(t).Namespace, newContext()
			foo := newNamespace("foo")
			foo.Spec.DeletionProtection = tc.protect
			created, err := namespaces.Create(ctx, foo, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now := created.(*tenancy.Namespace)
			namespaces.store.Storage.Storage = &staleStorage{namespaces.store.Storage.Storage, tc.stale(now.DeepCopy())}
			options := &metav1.DeleteOptions{}
			if tc.options != nil {
				options = tc.options(now)
			}
			obj, removed, err := namespaces.Delete(ctx, "foo", rest.ValidateAllObjectFunc, options)
			if tc.want != nil {
				if !tc.want(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || removed {
				t.Fatalf("removed %v, error %v", removed, err)
			}
			if got := obj.(*tenancy.Namespace); got.UID != now.UID || got.DeletionTimestamp.IsZero() {
				t.Errorf("deleted %+v", got)
			}
		})
	}
	t.Run("Terminating since", func(t *testing.T) {
		storage, ctx := newStorage(t), newContext()
		created, err := create()(ctx, storage)
		if err != nil {
			t.Fatal(err)
		}
		terminating, err := remove(metav1.DeleteOptions{})(ctx, storage)
		if err != nil {
			t.Fatal(err)
		}
		store := storage.Namespace.store
		store.Storage.Storage = &staleStorage{store.Storage.Storage, created.(*tenancy.Namespace).DeepCopy()}
		obj, err := remove(metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})(ctx, storage)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(terminating, obj); diff != "" {
			t.Errorf("the second delete changed the Namespace (-before +after):\n%s", diff)
		}
	})
	t.Run("removed since", func(t *testing.T) {
		namespaces := newStorage(t).Namespace
		namespaces.store.Storage.Storage = &staleStorage{namespaces.store.Storage.Storage, &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foo", UID: "1", ResourceVersion: "1"}}}
		if _, _, err := namespaces.Delete(newContext(), "foo", rest.ValidateAllObjectFunc, nil); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want NotFound", err)
		}
	})
}

// TestDeleteWithoutCollector deletes Namespaces that have a finalizer of the garbage collector,
// which there is not. Without it, nothing holds them.
func TestDeleteWithoutCollector(t *testing.T) {
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	for _, policy := range policies {
		for _, finalizer := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
			t.Run(string(policy)+" "+finalizer, func(t *testing.T) {
				storage, ctx := newStorage(t), newContext()
				storage.Namespace.store.EnableGarbageCollection = false
				storage.do(t, ctx, create(), update(finalize, specFinalizers()), update(resource, metadataFinalizers(finalizer)))
				if _, err := remove(metav1.DeleteOptions{PropagationPolicy: &policy})(ctx, storage); err != nil {
					t.Fatal(err)
				}
				if got := storage.state(t, ctx); got != nil {
					t.Errorf("the Namespace exists: %+v", *got)
				}
			})
		}
	}
}

// fullStorage is a storage whose etcd is full for the first update.
type fullStorage struct {
	apistorage.Interface
	full error
}

func (s *fullStorage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, try apistorage.UpdateFunc, cached runtime.Object) error {
	if err := s.full; err != nil {
		s.full = nil
		return err
	}
	return s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, try, cached)
}

// TestDeleteWhileFull deletes a Namespace without finalizers in its spec while etcd is full, and
// has space again right after the mark has failed. It is removed, or stays Active if it has another
// finalizer, or the deletion sets one.
func TestDeleteWhileFull(t *testing.T) {
	for _, tc := range []struct {
		policy     metav1.DeletionPropagation
		finalizers []string
		stays      bool
	}{
		{policy: metav1.DeletePropagationBackground},
		{policy: metav1.DeletePropagationBackground, finalizers: []string{"a/a"}, stays: true},
		{policy: metav1.DeletePropagationForeground, stays: true},
		{policy: metav1.DeletePropagationOrphan, stays: true},
	} {
		t.Run(fmt.Sprint(tc.policy, tc.finalizers), func(t *testing.T) {
			storage, ctx := newStorage(t), newContext()
			store := storage.Namespace.store
			store.EnableGarbageCollection = true
			storage.do(t, ctx, create(), update(finalize, specFinalizers()), update(resource, metadataFinalizers(tc.finalizers...)))
			store.Storage.Storage = &fullStorage{store.Storage.Storage, tenancyerrors.NewStorageFull(errors.New("no space"))}
			_, err := remove(metav1.DeleteOptions{PropagationPolicy: &tc.policy})(ctx, storage)
			var want *state
			if tc.stays {
				want = &state{Phase: tenancy.NamespaceActive, Finalizers: tc.finalizers}
			}
			if tenancyerrors.IsStorageFull(err) != tc.stays || !tc.stays && err != nil {
				t.Errorf("got the error %v", err)
			}
			if diff := cmp.Diff(want, storage.state(t, ctx), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}
