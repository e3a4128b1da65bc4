// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacepurge"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// caches are the stores with and without the watch cache.
var caches = map[string]func(*storage.Options){
	"with watch cache":    func(*storage.Options) {},
	"without watch cache": func(o *storage.Options) { o.Etcd.EnableWatchCache = false },
}

// names returns the names of the held objects, by resource.
func names(purged []tenancy.PurgedResource) map[string][]string {
	held := map[string][]string{}
	for _, r := range purged {
		held[r.Resource] = []string{}
		for _, o := range r.Objects {
			held[r.Resource] = append(held[r.Resource], o.Name)
		}
	}
	return held
}

// TestOrdinary shows that an object with nothing to wait for is removed in one
// write, that the others are deleted as by DELETE, and that other resources have
// to wait until all Pods are gone.
func TestOrdinary(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for name, change := range caches {
		t.Run(name, func(t *testing.T) {
			p := newPurger(t, member, change)
			p.CreatePods(t, 5)
			p.CreatePod(t, "running", registrytest.OnNode)
			p.CreatePod(t, "held", registrytest.WithFinalizer)
			p.CreatePod(t, "held-and-running", registrytest.OnNode, registrytest.WithFinalizer)
			p.CreateLimitRange(t, "a")
			events := p.WatchPods(t)
			uid := p.Terminate(t)
			waiting := []string{"held", "held-and-running", "running"}

			for _, removed := range []int64{5, 0} { // a second purge changes nothing
				got, err := p.purge(ordinary(uid))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(map[string][]string{"pods": waiting}, names(got)); diff != "" || got[0].Removed != removed || got[0].Held != 3 {
					t.Errorf("removed %d, held %d, want %d and 3 (-want +got):\n%s", got[0].Removed, got[0].Held, removed, diff)
				}
				if diff := cmp.Diff(waiting, p.PodNames(t)); diff != "" {
					t.Fatalf("left (-want +got):\n%s", diff)
				}
			}
			for name, grace := range map[string]int64{"running": 30, "held": 0, "held-and-running": 30} {
				if p := p.GetPod(t, name); p.DeletionTimestamp == nil || ptr.Deref(p.DeletionGracePeriodSeconds, -1) != grace {
					t.Errorf("%s is deleted at %v, with a grace period of %v, want %d s", name, p.DeletionTimestamp, p.DeletionGracePeriodSeconds, grace)
				}
			}
			if _, err := p.LimitRanges.Get(p.Context, "a", &metav1.GetOptions{}); err != nil {
				t.Errorf("the LimitRange, while Pods are left: %v", err)
			}

			byName := map[string][]watch.EventType{}
			revisions := map[string]bool{}
			for _, event := range events(5) {
				p := event.Object.(*tenancy.Pod)
				if byName[p.Name] = append(byName[p.Name], event.Type); revisions[p.ResourceVersion] {
					t.Errorf("two events have the resourceVersion %s", p.ResourceVersion)
				}
				revisions[p.ResourceVersion] = true
			}
			for i := range 5 {
				name := fmt.Sprintf("p%02d", i)
				if diff := cmp.Diff([]watch.EventType{watch.Deleted}, byName[name]); diff != "" {
					t.Errorf("events of %s (-want +got):\n%s", name, diff)
				}
			}

			for _, name := range waiting {
				p.UpdatePod(t, name, func(p *tenancy.Pod) { p.Finalizers, p.Spec.NodeName = nil, "" })
				if _, _, err := p.Pods.Delete(p.Context, name, rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
			got, err := p.purge(ordinary(uid))
			if err != nil {
				t.Fatal(err)
			}
			want := []tenancy.PurgedResource{{Group: tenancy.GroupName, Resource: "pods"}, {Group: tenancy.GroupName, Resource: "limitranges", Removed: 1}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with no Pod left (-want +got):\n%s", diff)
			}
			if _, err := p.LimitRanges.Get(p.Context, "a", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the LimitRange: %v, want it gone", err)
			}
		})
	}
}

// TestHeldQuota shows that a quota, which is deleted before the Pods, does not delay what
// only has to wait for them.
func TestHeldQuota(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.purges.Content = append([]namespacepurge.Content{{
		Deleter:  deletecollection.Deleter{Store: p.Quotas.Store},
		Resource: v1.SchemeGroupVersion.WithResource("resourcequotas"), Kind: v1.SchemeGroupVersion.WithKind("ResourceQuota"),
		Stage: tenancy.PurgeContent,
	}}, p.purges.Content...)
	quota := &tenancy.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: p.Namespace, Finalizers: []string{"example.com/hold"}}}
	if _, err := p.Quotas.Create(p.Context, quota, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.CreatePods(t, 1)
	p.CreateLimitRange(t, "a")
	got, err := p.purge(ordinary(p.Terminate(t)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"resourcequotas": {"q"}, "pods": {}, "limitranges": {}}, names(got)); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

// TestForced shows that everything is removed, each object in one write.
func TestForced(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	all := []string{"ended", "held", "held-and-running", "marked", "p00", "p01", "running"}
	held := map[string][]string{"pods": {"held", "held-and-running", "marked", "running"}, "limitranges": {}}
	for name, change := range caches {
		t.Run(name, func(t *testing.T) {
			p := newPurger(t, member, change)
			p.CreatePods(t, 2)
			p.CreatePod(t, "held", registrytest.WithFinalizer)
			p.CreatePod(t, "running", registrytest.OnNode)
			p.CreatePod(t, "ended", registrytest.OnNode)
			p.UpdatePod(t, "ended", func(p *tenancy.Pod) { p.Status.Phase = "Succeeded" })
			p.CreatePod(t, "held-and-running", registrytest.OnNode, registrytest.WithFinalizer)
			p.CreatePod(t, "marked", registrytest.OnNode)
			if _, _, err := p.Pods.Delete(p.Context, "marked", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			p.CreateLimitRange(t, "limits")
			events := p.WatchPods(t)
			uid := p.Terminate(t)

			for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
				got, err := p.purge(forced(uid), dryRun...)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(held, names(got)); diff != "" || got[0].Removed != 7 || got[0].Held != 4 || got[1].Removed != 1 {
					t.Errorf("dry run %v: got %+v (-want +got):\n%s", dryRun, got, diff)
				}
				want := []string{}
				if dryRun != nil {
					want = all
				}
				if diff := cmp.Diff(want, p.PodNames(t)); diff != "" {
					t.Errorf("dry run %v: left (-want +got):\n%s", dryRun, diff)
				}
			}
			for _, event := range events(len(all)) {
				if event.Type != watch.Deleted {
					t.Errorf("%s of %s, want only its removal", event.Type, event.Object.(*tenancy.Pod).Name)
				}
			}
			list, err := p.LimitRanges.List(p.Context, &metainternalversion.ListOptions{})
			if err != nil || len(list.(*tenancy.LimitRangeList).Items) > 0 {
				t.Errorf("the LimitRanges that are left: %v, error %v", list, err)
			}
		})
	}
}

// TestOvertaken changes a Pod between the list and its delete.
func TestOvertaken(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for name, test := range map[string]struct {
		change  func(t *testing.T, p *purger)
		stays   bool // in an ordinary purge
		removed int64
	}{
		"assigned to a node": {func(t *testing.T, p *purger) { p.UpdatePod(t, "p01", registrytest.OnNode) }, true, 3},
		"finalizer added":    {func(t *testing.T, p *purger) { p.UpdatePod(t, "p01", registrytest.WithFinalizer) }, true, 3},
		"label added": {func(t *testing.T, p *purger) {
			p.UpdatePod(t, "p01", func(p *tenancy.Pod) { p.Labels["new"] = "label" })
		}, false, 3},
		"gone": {func(t *testing.T, p *purger) {
			if _, _, err := p.Pods.Delete(p.Context, "p01", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
				t.Error(err)
			}
		}, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec) {
				p := newPurger(t, member)
				p.CreatePods(t, 3)
				uid := p.Terminate(t)
				var once sync.Once
				p.admit = func(name string) error {
					if name == "p01" {
						once.Do(func() { test.change(t, p) })
					}
					return nil
				}
				got, err := p.purge(spec(uid))
				if err != nil {
					t.Fatal(err)
				}
				want, removed := []string{}, test.removed
				if test.stays && !spec(uid).Force {
					want, removed = []string{"p01"}, removed-1
				}
				if diff := cmp.Diff(want, p.PodNames(t)); diff != "" || got[0].Removed != removed {
					t.Errorf("removed %d, want %d; left (-want +got):\n%s", got[0].Removed, removed, diff)
				}
				if len(want) > 0 && p.GetPod(t, "p01").DeletionTimestamp == nil {
					t.Error("the Pod that is left is not marked for deletion")
				}
			})
		})
	}
}

// TestMarkedOnly purges a Pod that a delete has marked and then failed to remove, as when the
// server was killed between these writes.
func TestMarkedOnly(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.CreatePods(t, 1)
	store := p.Pods.Store
	key, err := store.KeyFunc(p.Context, "p00")
	if err != nil {
		t.Fatal(err)
	}
	mark := func(obj runtime.Object) (runtime.Object, error) {
		pod := obj.(*tenancy.Pod)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64)
		return pod, nil
	}
	if err := store.Storage.GuaranteedUpdate(p.Context, key, &tenancy.Pod{}, false, nil, apistorage.SimpleUpdate(mark), false, nil); err != nil {
		t.Fatal(err)
	}
	got, err := p.purge(ordinary(p.Terminate(t)))
	if err != nil || got[0].Removed != 1 || len(p.PodNames(t)) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// endDuringPurge removes the Pod p00 and then the Namespace when the purge deletes the
// Pod, and continues with then.
func (p *purger) endDuringPurge(t *testing.T, then func()) {
	var once sync.Once
	p.admit = func(string) error {
		once.Do(func() {
			if _, _, err := p.Pods.Delete(p.Context, "p00", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
				t.Error(err)
			}
			p.RemoveNamespace(t)
			then()
		})
		return nil
	}
}

// TestIncarnation replaces the Namespace and its Pod between the list and the
// delete: the new Pod stays.
func TestIncarnation(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	both(t, func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec) {
		p := newPurger(t, member)
		p.CreatePods(t, 1)
		uid := p.Terminate(t)
		var replacement *tenancy.Pod
		p.endDuringPurge(t, func() {
			p.CreateNamespace(t)
			replacement = p.CreatePod(t, "p00", registrytest.WithFinalizer)
		})
		// The purge continues with the LimitRanges, and finds another Namespace.
		if _, err := p.purge(spec(uid)); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "is for the namespace with UID") {
			t.Errorf("got %v", err)
		}
		if pod := p.GetPod(t, "p00"); pod == nil || pod.UID != replacement.UID || pod.DeletionTimestamp != nil {
			t.Errorf("the Pod of the next Namespace: %v", pod)
		}
	})
}

// TestNamespaceGoes removes the Namespace when the last object is gone, while the purge
// continues with the other resources.
func TestNamespaceGoes(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	both(t, func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec) {
		p := newPurger(t, member)
		p.CreatePods(t, 1)
		uid := p.Terminate(t)
		p.endDuringPurge(t, func() {})
		if _, err := p.purge(spec(uid)); err != nil {
			t.Errorf("got %v", err)
		}
		if _, err := p.purge(spec(uid)); !apierrors.IsNotFound(err) {
			t.Errorf("a purge without a Namespace: got %v", err)
		}
	})
}

// TestDependents purges Pods that wait for a garbage collector. All content is deleted, so
// there is nothing to wait for.
func TestDependents(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t), func(o *storage.Options) { o.Etcd.EnableGarbageCollection = true })
	for i, finalizer := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
		p.CreatePod(t, fmt.Sprint("p", i), func(pod *tenancy.Pod) { pod.Finalizers = []string{finalizer} })
	}
	got, err := p.purge(ordinary(p.Terminate(t)))
	if err != nil || got[0].Removed != 2 || len(p.PodNames(t)) > 0 {
		t.Errorf("got %v, %v; left %v", got, err, p.PodNames(t))
	}
}

// TestUnreadableQuota purges the Pods of a Namespace with a quota that cannot be read. In a
// Namespace that is being deleted, no quota counts them.
func TestUnreadableQuota(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	p := newPurger(t, member)
	p.CreatePod(t, "free")
	p.CreatePod(t, "held", registrytest.WithFinalizer)
	if _, err := member.Client().Put(t.Context(), "/registry/tenancy.borough.io/resourcequotas/"+p.Namespace+"/q", "unreadable"); err != nil {
		t.Fatal(err)
	}
	got, err := p.purge(forced(p.Terminate(t)))
	if err != nil || got[0].Removed != 2 || len(p.PodNames(t)) > 0 {
		t.Errorf("got %v, %v; left %v", got, err, p.PodNames(t))
	}
}

// TestUnreadable purges a Namespace with an object that cannot be read. The purge fails, so that
// nothing takes the Namespace for empty. A Pod may run, so only force deletes what other stages
// have.
func TestUnreadable(t *testing.T) {
	for _, tc := range []struct {
		resource string
		left     bool // what can be read of the last stage
	}{
		{"pods", true},
		{"limitranges", false},
	} {
		for name, finalize := range map[string]bool{"purge": false, "finalize": true} {
			t.Run(tc.resource+" "+name, func(t *testing.T) {
				member := storagetest.StartEmbedded(t)
				p := newPurger(t, member)
				p.CreatePod(t, "sound")
				p.CreateLimitRange(t, "sound")
				if _, err := member.Client().Put(t.Context(), "/registry/tenancy.borough.io/"+tc.resource+"/"+p.Namespace+"/bad", "unreadable"); err != nil {
					t.Fatal(err)
				}
				p.awaitCaches(t)
				uid := p.Terminate(t)
				purge := ordinary(uid)
				purge.Finalize = finalize
				got, err := p.purge(purge)
				want := fmt.Sprintf(`%s.tenancy.borough.io ["bad"] in the namespace %q cannot be read`, tc.resource, p.Namespace)
				if apierrors.ReasonForError(err) != metav1.StatusReasonStoreReadError || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, %v, want %q", got, err, want)
				}
				_, err = p.LimitRanges.Get(p.Context, "sound", &metav1.GetOptions{})
				if left := err == nil; left != tc.left || len(p.PodNames(t)) > 0 {
					t.Errorf("left: %v, and the LimitRange: %t, want %t", p.PodNames(t), left, tc.left)
				}
				if got, err := p.purge(forced(uid)); err != nil || len(got) != 2 || got[1].Removed == 1 != tc.left {
					t.Errorf("with force: got %v, %v", got, err)
				}
			})
		}
	}
}
