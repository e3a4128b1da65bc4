// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacepurge"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// oldCache is a store whose watch cache does not change after hold.
type oldCache struct {
	storage.Interface
	remover
	list runtime.Object
}

type remover interface {
	Remove(ctx context.Context, key string, resourceVersion uint64) (removed bool, err error)
}

// holdCache keeps the watch cache of a resource of the purger as it is at the latest
// revision.
func (p *purger) holdCache(t *testing.T, content *namespacepurge.Content) {
	t.Helper()
	list, err := content.Store.List(p.Context, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store := *content.Store
	inner := store.Storage.Storage
	store.Storage = genericregistry.DryRunnableStorage{Storage: &oldCache{inner, inner.(remover), list}, Codec: store.Storage.Codec}
	content.Store = &store
}

func (o *oldCache) GetList(ctx context.Context, key string, options storage.ListOptions, list runtime.Object) error {
	if options.ResourceVersion == "" {
		return o.Interface.GetList(ctx, key, options, list)
	}
	switch list := list.(type) {
	case *tenancy.PodList:
		*list = *o.list.(*tenancy.PodList).DeepCopy()
	case *tenancy.LimitRangeList:
		*list = *o.list.(*tenancy.LimitRangeList).DeepCopy()
	}
	return nil
}

// readCounter counts the reads of a Namespace.
type readCounter struct {
	rest.Getter
	reads atomic.Int64
	after func() // is called after the first read
}

func (c *readCounter) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	first := c.reads.Add(1) == 1
	obj, err := c.Getter.Get(ctx, name, options)
	if first && c.after != nil {
		c.after()
	}
	return obj, err
}

// TestCached purges Namespaces by watch caches of different ages.
func TestCached(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	const pods, limitRanges = 0, 1
	pod := func(name string) func(*testing.T, *purger) {
		return func(t *testing.T, p *purger) { p.CreatePod(t, name) }
	}
	limitRange := func(t *testing.T, p *purger) { p.CreateLimitRange(t, "l") }
	hold := func(contents ...int) func(*testing.T, *purger) {
		return func(t *testing.T, p *purger) {
			for _, i := range contents {
				p.holdCache(t, &p.purges.Content[i])
			}
		}
	}
	terminate := func(t *testing.T, p *purger) { p.Terminate(t) }
	for _, tc := range []struct {
		name  string
		steps []func(*testing.T, *purger)
		asked []string // without repetitions
		// reads is the number of reads of the Namespace: one after each list or page, and one
		// for all caches.
		reads int64
	}{
		{
			name:  "all content is in the caches",
			steps: []func(*testing.T, *purger){pod("a"), limitRange, terminate, hold(pods, limitRanges)},
			asked: []string{"DELETE pods NS/a", "DELETE limitranges NS/l", "UPDATE namespaces/finalize NS"},
			reads: 1,
		},
		{
			name:  "caches from before the content",
			steps: []func(*testing.T, *purger){hold(pods, limitRanges), pod("a"), limitRange, terminate},
			asked: []string{"UPDATE namespaces/finalize NS", "DELETE pods NS/a", "DELETE limitranges NS/l", "UPDATE namespaces/finalize NS"},
			reads: 2,
		},
		{
			name:  "only the cache of the Pods is from before the content",
			steps: []func(*testing.T, *purger){hold(pods), pod("a"), limitRange, terminate, hold(limitRanges)},
			asked: []string{"DELETE pods NS/a", "DELETE limitranges NS/l", "UPDATE namespaces/finalize NS"},
			reads: 2,
		},
		{
			name:  "one Pod is not in the cache",
			steps: []func(*testing.T, *purger){pod("a"), hold(pods, limitRanges), pod("b"), terminate},
			asked: []string{"DELETE pods NS/a", "UPDATE namespaces/finalize NS", "DELETE pods NS/b", "UPDATE namespaces/finalize NS"},
			reads: 3,
		},
		{
			name: "a Pod in the cache was replaced",
			steps: []func(*testing.T, *purger){pod("a"), hold(pods, limitRanges), func(t *testing.T, p *purger) {
				if _, _, err := p.Pods.Delete(p.Context, "a", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
					t.Fatal(err)
				}
			}, pod("a"), terminate},
			asked: []string{"DELETE pods NS/a", "UPDATE namespaces/finalize NS", "DELETE pods NS/a", "UPDATE namespaces/finalize NS"},
			reads: 3,
		},
		{
			name: "a Pod in the cache has changed",
			steps: []func(*testing.T, *purger){pod("a"), hold(pods, limitRanges), func(t *testing.T, p *purger) {
				p.UpdatePod(t, "a", registrytest.WithFinalizer)
				p.UpdatePod(t, "a", func(p *tenancy.Pod) { p.Finalizers = nil })
			}, terminate},
			asked: []string{"DELETE pods NS/a", "UPDATE namespaces/finalize NS"},
			reads: 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPurger(t, member)
			uid := p.UID(t)
			for _, step := range tc.steps {
				step(t, p)
			}
			namespaces := &readCounter{Getter: p.purges.Namespaces}
			p.purges.Namespaces = namespaces
			p.operations = nil
			spec := tenancy.NamespacePurgeSpec{NamespaceUID: uid, Finalize: true}
			obj, err := p.purges.Create(p.ctx, &tenancy.NamespacePurge{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace}, Spec: spec}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !obj.(*tenancy.NamespacePurge).Status.Finalized {
				t.Error("the Namespace is not finalized")
			}
			var asked []string
			for _, a := range tc.asked {
				asked = append(asked, p.inNamespace(a))
			}
			if diff := cmp.Diff(asked, slices.Compact(p.operations)); diff != "" {
				t.Errorf("admission was asked (-want +got):\n%s", diff)
			}
			if got := namespaces.reads.Load(); got != tc.reads {
				t.Errorf("read the Namespace %d times, want %d", got, tc.reads)
			}
			resources := map[string]bool{}
			for _, purged := range obj.(*tenancy.NamespacePurge).Status.Purged {
				if resources[purged.Resource] || purged.Held != 0 {
					t.Errorf("purged: %v", purged)
				}
				resources[purged.Resource] = true
			}
		})
	}
}

// TestCachedSkips purges Namespaces whose content changes after the caches. A resource that
// the purge does not reach has no entry in the status: 0 held would mean that it is empty.
func TestCachedSkips(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for _, tc := range []struct {
		name   string
		before func(t *testing.T, p *purger)
		// terminating is whether the caches have the Namespace that is being deleted.
		terminating bool
		after       func(t *testing.T, p *purger)
		want        []string
	}{
		{
			name:        "a Pod is held that is not in the cache",
			before:      func(t *testing.T, p *purger) { p.CreatePod(t, "a"); p.CreateLimitRange(t, "l") },
			terminating: true,
			after:       func(t *testing.T, p *purger) { p.UpdatePod(t, "a", registrytest.WithFinalizer) },
			want:        []string{"pods: removed 0, held 1"},
		},
		{
			name:   "a Pod is held",
			before: func(t *testing.T, p *purger) { p.CreatePod(t, "a"); p.CreateLimitRange(t, "l") },
			after:  func(t *testing.T, p *purger) { p.UpdatePod(t, "a", registrytest.WithFinalizer) },
			want:   []string{"pods: removed 0, held 1"},
		},
		{
			name:   "a Pod that is held is new",
			before: func(t *testing.T, p *purger) { p.CreatePod(t, "a") },
			after: func(t *testing.T, p *purger) {
				p.CreatePod(t, "b", registrytest.WithFinalizer)
				p.CreateLimitRange(t, "l")
			},
			want: []string{"pods: removed 1, held 1"},
		},
		{name: "the Namespace is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPurger(t, member)
			if tc.before != nil {
				tc.before(t, p)
			}
			if tc.terminating {
				p.Terminate(t)
			}
			for i := range p.purges.Content {
				p.holdCache(t, &p.purges.Content[i])
			}
			if tc.after != nil {
				tc.after(t, p)
			}
			uid := p.UID(t)
			if !tc.terminating {
				p.Terminate(t)
			}
			purged, err := p.purge(tenancy.NamespacePurgeSpec{NamespaceUID: uid, Finalize: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, operation := range p.operations {
				if strings.Contains(operation, "limitranges") {
					t.Errorf("%s, while a Pod is held", operation)
				}
			}
			var got []string
			for _, entry := range purged {
				got = append(got, fmt.Sprintf("%s: removed %d, held %d", entry.Resource, entry.Removed, entry.Held))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("purged (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCachedPages purges more objects than a page of a list has. The caches are not used: a
// purge holds one page in memory.
func TestCachedPages(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.CreatePods(t, 3)
	uid := p.Terminate(t)
	p.awaitCaches(t)
	namespaces := &readCounter{Getter: p.purges.Namespaces}
	p.purges.Namespaces = namespaces
	got, err := p.purge(tenancy.NamespacePurgeSpec{NamespaceUID: uid, Finalize: true})
	if err != nil || got[0].Removed != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	if got := namespaces.reads.Load(); got != 3 { // two pages of Pods, one of LimitRanges
		t.Errorf("read the Namespace %d times, want 3", got)
	}
	if got := slices.Index(p.operations, p.inNamespace("UPDATE namespaces/finalize NS")); got != 3 {
		t.Errorf("the Namespace was to be finalized after %d deletes, want 3", got)
	}
}

// TestCachedOfNextNamespace purges by caches that have the content of a Namespace with
// the same name that is not being deleted.
func TestCachedOfNextNamespace(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	old := p.Terminate(t)
	p.RemoveNamespace(t)
	p.CreateNamespace(t)
	p.CreatePod(t, "a")
	for i := range p.purges.Content {
		p.holdCache(t, &p.purges.Content[i])
	}
	for name, uid := range map[string]types.UID{"the old Namespace": old, "the next Namespace": p.UID(t)} {
		_, err := p.purge(tenancy.NamespacePurgeSpec{NamespaceUID: uid, Finalize: true})
		if !apierrors.IsConflict(err) {
			t.Errorf("purge of %s: got %v, want Conflict", name, err)
		}
	}
	if diff := cmp.Diff([]string{"a"}, p.PodNames(t)); diff != "" {
		t.Errorf("the Pods (-want +got):\n%s", diff)
	}
}

// TestReplacedWhileListing replaces the Namespace between the first read of it and the
// list that follows, because the cache of the Pods is old: the new Pod stays.
func TestReplacedWhileListing(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.holdCache(t, &p.purges.Content[0])
	p.CreateLimitRange(t, "l")
	uid := p.Terminate(t)
	p.holdCache(t, &p.purges.Content[1])
	p.purges.Namespaces = &readCounter{Getter: p.purges.Namespaces, after: func() {
		if _, _, err := p.LimitRanges.Delete(p.Context, "l", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		p.RemoveNamespace(t)
		p.CreateNamespace(t)
		p.CreatePod(t, "a")
	}}
	if _, err := p.purge(tenancy.NamespacePurgeSpec{NamespaceUID: uid, Finalize: true}); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want Conflict", err)
	}
	if diff := cmp.Diff([]string{"a"}, p.PodNames(t)); diff != "" {
		t.Errorf("the Pods (-want +got):\n%s", diff)
	}
}

// TestCachedRefused purges by caches where admission refuses to delete what comes first. That
// stops only what has a higher stage.
func TestCachedRefused(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	slices.Reverse(p.purges.Content) // the LimitRanges first, which have the higher stage
	p.CreatePods(t, 1)
	p.CreateLimitRange(t, "l")
	uid := p.Terminate(t)
	for i := range p.purges.Content {
		p.holdCache(t, &p.purges.Content[i])
	}
	p.admit = func(name string) error {
		if name == "l" {
			return apierrors.NewForbidden(tenancy.Resource("limitranges"), name, errors.New("it is kept"))
		}
		return nil
	}
	if _, err := p.purge(tenancy.NamespacePurgeSpec{NamespaceUID: uid, Finalize: true}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want the error of the LimitRange", err)
	}
	if left := p.PodNames(t); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
