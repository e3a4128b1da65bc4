// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

func noCollector(o *storage.Options) { o.Etcd.EnableGarbageCollection = false }

// TestOutdated deletes a Pod that was just assigned to a node, while the cache still has
// it without a node: the Pod gets its grace period.
func TestOutdated(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	outdated := r.CreatePod(t, "p")
	r.UpdatePod(t, "p", registrytest.OnNode)
	r.Pods.Storage.Storage = &outdatedStore{r.Pods.Storage.Storage, outdated}
	_, removed, err := r.Pods.Delete(r.Context, "p", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil || removed {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if p := r.GetPod(t, "p"); p == nil || p.DeletionGracePeriodSeconds == nil || *p.DeletionGracePeriodSeconds != 30 {
		t.Errorf("it is %+v, want it marked with a grace period of 30 s", p)
	}
}

// setFinalizers returns a function that updates the finalizers of a LimitRange.
func setFinalizers(t *testing.T, r *registrytest.Registry, name string) func(finalizers ...string) {
	return func(finalizers ...string) {
		t.Helper()
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			limits := old.DeepCopyObject().(*tenancy.LimitRange)
			limits.Finalizers = finalizers
			return limits, nil
		})
		if _, _, err := r.LimitRanges.Update(r.Context, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFinalizerAdded deletes a LimitRange to which another client adds a finalizer just
// before it would be removed: it waits for that.
func TestFinalizerAdded(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreateLimitRange(t, "l")
	update := setFinalizers(t, r, "l")
	r.LimitRanges.Storage.Storage = storagetest.BeforeDelete(r.LimitRanges.Storage.Storage, func() { update("example.com/hold") })
	obj, removed, err := r.LimitRanges.Delete(r.Context, "l", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil || removed {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if limits := obj.(*tenancy.LimitRange); limits.DeletionTimestamp == nil || len(limits.Finalizers) != 1 {
		t.Errorf("it is %+v, want it marked", limits)
	}
	update()
	if _, err := r.LimitRanges.Get(r.Context, "l", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("read it: %v", err)
	}
}

// TestReplaced deletes a Pod without a node. Just before it would be removed, another client
// removes it, and creates one with its name that runs on a node: this one gets its grace
// period.
func TestReplaced(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreatePod(t, "p")
	r.Pods.Storage.Storage = storagetest.BeforeDelete(r.Pods.Storage.Storage, func() {
		if _, _, err := r.Pods.Delete(r.Context, "p", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
			t.Error(err)
		}
		r.CreatePod(t, "p")
		r.UpdatePod(t, "p", registrytest.OnNode)
	})
	if _, removed, err := r.Pods.Delete(r.Context, "p", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil || removed {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if p := r.GetPod(t, "p"); p == nil || p.DeletionGracePeriodSeconds == nil || *p.DeletionGracePeriodSeconds != 30 {
		t.Errorf("it is %+v, want it marked with a grace period of 30 s", p)
	}
}

// TestRemovalByAnOutdatedUpdate releases a LimitRange that is being deleted. Before the
// update can remove it, another client has removed it and created it again.
func TestRemovalByAnOutdatedUpdate(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreateLimitRange(t, "l")
	update := setFinalizers(t, r, "l")
	update("example.com/hold")
	if _, _, err := r.LimitRanges.Delete(r.Context, "l", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.LimitRanges.Storage.Storage = storagetest.BeforeDelete(r.LimitRanges.Storage.Storage, func() {
		update()
		r.CreateLimitRange(t, "l")
	})
	update()
	if _, err := r.LimitRanges.Get(r.Context, "l", &metav1.GetOptions{}); err != nil {
		t.Errorf("the new LimitRange: %v", err)
	}
}

// TestFinalizerIgnored deletes LimitRanges with a finalizer of the garbage collector. The store
// removes it together with the object if the policy is Background, which it always is without
// a garbage collector.
func TestFinalizerIgnored(t *testing.T) {
	policies := map[string]*metav1.DeleteOptions{
		"background":   {PropagationPolicy: new(metav1.DeletePropagationBackground)},
		"foreground":   {PropagationPolicy: new(metav1.DeletePropagationForeground)},
		"orphan":       {PropagationPolicy: new(metav1.DeletePropagationOrphan)},
		"none":         {},
		"no options":   nil,
		"orphans kept": {OrphanDependents: new(true)},
	}
	for collector, change := range map[string]func(*storage.Options){"a collector": collectGarbage, "no collector": noCollector} {
		r := registrytest.New(t, storagetest.StartEmbedded(t), change)
		for name, options := range policies {
			for _, finalizer := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
				limits := &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{GenerateName: "l", Finalizers: []string{finalizer}}}
				created, err := r.LimitRanges.Create(r.Context, limits, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				_, removed, err := r.LimitRanges.Delete(r.Context, created.(*tenancy.LimitRange).Name, rest.ValidateAllObjectFunc, options)
				if want := name == "background" || collector == "no collector"; err != nil || removed != want {
					t.Errorf("%s, finalizer %s, options %s: removed %t, %v; want %t", collector, finalizer, name, removed, err, want)
				}
			}
		}
	}
}

// outdatedStore is a store whose cache is behind: it tries an update on an outdated
// object first.
type outdatedStore struct {
	apistorage.Interface
	outdated runtime.Object
}

func (s *outdatedStore) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object) error {
	if _, _, err := update(s.outdated.DeepCopyObject(), apistorage.ResponseMeta{}); err != nil {
		return err
	}
	return s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached)
}
