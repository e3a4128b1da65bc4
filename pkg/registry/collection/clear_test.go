// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/collection"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// cleared takes down what a Clear has removed.
type cleared struct {
	mu   sync.Mutex
	held map[string]bool // by name
}

func (c *cleared) options(uid types.UID) collection.ClearOptions {
	c.held = map[string]bool{}
	return collection.ClearOptions{NamespaceUID: uid, Removed: func(obj metav1.Object, held bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held[obj.GetName()] = held
	}}
}

func TestClear(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	want := map[string]bool{"p00": false, "p01": false, "held": true, "running": true, "ended": false, "held-and-running": true, "marked": true}
	for name, change := range map[string]func(*storage.Options){
		"with watch cache":    func(*storage.Options) {},
		"without watch cache": func(o *storage.Options) { o.Etcd.EnableWatchCache = false },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, member, change)
			deleter := collection.New(r.pods.Store, r.namespaces)
			deleter.SetPageSize(3)
			r.createPods(t, 2)
			r.createPod(t, "held", withFinalizer)
			r.createPod(t, "running", onNode)
			r.createPod(t, "ended", onNode)
			r.update(t, "ended", func(p *tenancy.Pod) { p.Status.Phase = "Succeeded" })
			r.createPod(t, "held-and-running", onNode, withFinalizer)
			r.createPod(t, "marked", onNode)
			if _, _, err := r.pods.Delete(r.ctx, "marked", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			r.createLimitRange(t, "other-resource")
			before := r.podNames(t)
			events := r.watchPods(t)
			uid := r.terminate(t)

			var told cleared
			options := told.options(uid)
			options.DryRun = true
			if err := deleter.Clear(r.ctx, rest.ValidateAllObjectFunc, options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, told.held); diff != "" {
				t.Errorf("a dry run tells (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, r.podNames(t)); diff != "" {
				t.Errorf("a dry run has changed (-before +after):\n%s", diff)
			}

			if err := deleter.Clear(r.ctx, rest.ValidateAllObjectFunc, told.options(uid)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, told.held); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if left := r.podNames(t); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
			for _, event := range events(len(want)) {
				if event.Type != watch.Deleted {
					t.Errorf("%s of %s, want nothing but its removal", event.Type, event.Object.(*tenancy.Pod).Name)
				}
			}
			if _, err := r.limitRanges.Get(r.ctx, "other-resource", &metav1.GetOptions{}); err != nil {
				t.Errorf("the LimitRange: %v", err)
			}
			if err := r.limitRanges.Clear(r.ctx, rest.ValidateAllObjectFunc, told.options(uid)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]bool{"other-resource": false}, told.held); diff != "" {
				t.Errorf("told of LimitRanges (-want +got):\n%s", diff)
			}
			// There is nothing left to do.
			if err := deleter.Clear(r.ctx, rest.ValidateAllObjectFunc, told.options(uid)); err != nil || len(told.held) > 0 {
				t.Errorf("again: %v, error %v", told.held, err)
			}
		})
	}
}

// TestClearIsBound: it removes nothing in a Namespace other than the one that it
// is bound to.
func TestClearIsBound(t *testing.T) {
	r := newRegistry(t, storagetest.StartEmbedded(t))
	r.createPods(t, 3)
	refused := func(ctx context.Context, uid types.UID, is func(error) bool, message string) {
		t.Helper()
		before := r.podNames(t)
		var told cleared
		if err := r.pods.Clear(ctx, rest.ValidateAllObjectFunc, told.options(uid)); !is(err) || !strings.Contains(err.Error(), message) {
			t.Errorf("got the error %v, want one with %q", err, message)
		}
		if diff := cmp.Diff(before, r.podNames(t)); diff != "" || len(told.held) > 0 {
			t.Errorf("told %v; Pods were removed (-before +after):\n%s", told.held, diff)
		}
	}
	refused(r.ctx, r.uid(t), apierrors.IsConflict, "this one is not; delete it first")
	refused(requestIn(t, "nowhere"), r.uid(t), apierrors.IsNotFound, `namespaces.tenancy.borough.io "nowhere" not found`)
	uid := r.terminate(t)
	refused(r.ctx, "another", apierrors.IsConflict, "with UID another, this one has UID "+string(uid))
}

// TestClearOvertaken: whatever others do to an object between the list and its
// turn, it goes; unless it is another one by then.
func TestClearOvertaken(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, r *registry)
		told      bool
	}{
		"protected again": {func(t *testing.T, r *registry) {
			r.update(t, "p01", func(p *tenancy.Pod) { p.Finalizers = []string{"example.com/other"} })
		}, true},
		"gone": {func(t *testing.T, r *registry) {
			if _, _, err := r.pods.Delete(r.ctx, "p01", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, member)
			r.createPods(t, 3)
			uid := r.terminate(t)
			var once sync.Once
			validate := func(_ context.Context, obj runtime.Object) error {
				if obj.(*tenancy.Pod).Name == "p01" {
					once.Do(func() { test.meanwhile(t, r) })
				}
				return nil
			}
			var told cleared
			if err := r.pods.Clear(r.ctx, validate, told.options(uid)); err != nil {
				t.Fatal(err)
			}
			if left := r.podNames(t); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
			if held, ok := told.held["p01"]; ok != test.told || held != test.told {
				t.Errorf("told %v", told.held)
			}
		})
	}
	t.Run("another incarnation", func(t *testing.T) {
		r := newRegistry(t, member)
		r.createPods(t, 1)
		uid := r.terminate(t)
		var replacement *tenancy.Pod
		var once sync.Once
		validate := func(context.Context, runtime.Object) error {
			once.Do(func() {
				if _, _, err := r.pods.Delete(r.ctx, "p00", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
					t.Error(err)
				}
				r.removeNamespace(t)
				r.createNamespace(t)
				replacement = r.createPod(t, "p00", withFinalizer)
			})
			return nil
		}
		var told cleared
		if err := r.pods.Clear(r.ctx, validate, told.options(uid)); err != nil {
			t.Fatal(err)
		}
		if p := r.getPod(t, "p00"); p == nil || p.UID != replacement.UID || len(told.held) > 0 {
			t.Errorf("told %v; the Pod of the next Namespace: %v", told.held, p)
		}
	})
}

// TestClearRefused: what may not be deleted stays, and does not keep the others.
func TestClearRefused(t *testing.T) {
	r := newRegistry(t, storagetest.StartEmbedded(t))
	r.createPods(t, 20)
	kept := []string{"p00", "p01", "p02", "p03", "p04", "p15"} // more than there are workers
	uid := r.terminate(t)
	validate := func(_ context.Context, obj runtime.Object) error {
		if slices.Contains(kept, obj.(*tenancy.Pod).Name) {
			return apierrors.NewForbidden(tenancy.Resource("pods"), "x", errors.New("not this one"))
		}
		return nil
	}
	var told cleared
	if err := r.pods.Clear(r.ctx, validate, told.options(uid)); !apierrors.IsForbidden(err) {
		t.Errorf("got the error %v", err)
	}
	if diff := cmp.Diff(kept, r.podNames(t)); diff != "" || len(told.held) != 20-len(kept) {
		t.Errorf("told %v; left (-want +got):\n%s", told.held, diff)
	}
}
