// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/collection"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestPurgeIsBound: a purge deletes nothing in a Namespace other than the one
// that it is bound to.
func TestPurgeIsBound(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	r := newRegistry(t, member)
	r.createPods(t, 3)
	refused := func(t *testing.T, ctx context.Context, is func(error) bool, message string) {
		t.Helper()
		before := r.podNames(t)
		_, err := r.pods.DeleteCollection(ctx, rest.ValidateAllObjectFunc, background(), nil)
		if !is(err) || !strings.Contains(err.Error(), message) {
			t.Errorf("got the error %v, want one with %q", err, message)
		}
		if diff := cmp.Diff(before, r.podNames(t)); diff != "" {
			t.Errorf("Pods were deleted (-before +after):\n%s", diff)
		}
	}
	t.Run("not being deleted", func(t *testing.T) {
		refused(t, purging(r.ctx, r.uid(t)), apierrors.IsConflict, "a namespace that is being deleted, this one is not")
	})
	t.Run("another incarnation, not being deleted", func(t *testing.T) {
		refused(t, purging(r.ctx, "another"), apierrors.IsConflict, "for the content of a namespace with UID another, this one has UID "+string(r.uid(t)))
	})
	uid := r.terminate(t)
	t.Run("another incarnation", func(t *testing.T) {
		refused(t, purging(r.ctx, "another"), apierrors.IsConflict, "with UID another, this one has UID "+string(uid))
	})
	t.Run("no UID", func(t *testing.T) { refused(t, purging(r.ctx, ""), apierrors.IsConflict, "with UID ,") })
	t.Run("no Namespace", func(t *testing.T) {
		other := *r
		other.name += "-none"
		_, err := r.pods.DeleteCollection(purging(requestIn(t, other.name), uid), rest.ValidateAllObjectFunc, background(), nil)
		if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces.tenancy.borough.io "`+other.name+`" not found`) {
			t.Errorf("got the error %v", err)
		}
	})
	t.Run("the one", func(t *testing.T) {
		got, err := r.pods.DeleteCollection(purging(r.ctx, uid), rest.ValidateAllObjectFunc, background(), nil)
		if err != nil || got != nil {
			t.Errorf("got %v and %v, want nothing", got, err)
		}
		if left := r.podNames(t); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// TestPurge: what has nothing to wait for goes in one write each; the rest is
// deleted as ever.
func TestPurge(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for name, change := range map[string]func(*storage.Options){
		"with watch cache":    func(*storage.Options) {},
		"without watch cache": func(o *storage.Options) { o.Etcd.EnableWatchCache = false },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, member, change)
			r.createPods(t, 5)
			r.createPod(t, "running", onNode)
			r.createPod(t, "held", withFinalizer)
			r.createPod(t, "held-and-running", onNode, withFinalizer)
			r.createLimitRange(t, "a")
			events := r.watchPods(t)
			uid := r.terminate(t)

			for _, wantDeleted := range []int{5, 0} { // again, it changes nothing
				deleted, remaining := -1, -1
				ctx := collection.WithPurge(r.ctx, collection.Purge{NamespaceUID: uid, Done: func(d, r int) { deleted, remaining = d, r }})
				if _, err := r.pods.DeleteCollection(ctx, rest.ValidateAllObjectFunc, background(), nil); err != nil {
					t.Fatal(err)
				}
				if deleted != wantDeleted || remaining != 3 {
					t.Errorf("told that %d are gone and %d remain, want %d and 3", deleted, remaining, wantDeleted)
				}
				if diff := cmp.Diff([]string{"held", "held-and-running", "running"}, r.podNames(t)); diff != "" {
					t.Fatalf("left (-want +got):\n%s", diff)
				}
			}
			for name, grace := range map[string]int64{"running": 30, "held": 0, "held-and-running": 30} {
				if p := r.getPod(t, name); p.DeletionTimestamp == nil || ptr.Deref(p.DeletionGracePeriodSeconds, -1) != grace {
					t.Errorf("%s is deleted at %v, in %v s, want in %d s", name, p.DeletionTimestamp, p.DeletionGracePeriodSeconds, grace)
				}
			}
			if _, err := r.limitRanges.DeleteCollection(purging(r.ctx, uid), rest.ValidateAllObjectFunc, background(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := r.limitRanges.Get(r.ctx, "a", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the LimitRange: %v, want it gone", err)
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
		})
	}
}

// TestAsKubernetes: without the UID of a Namespace everything is as the
// library's DeleteCollection has it.
func TestAsKubernetes(t *testing.T) {
	r := newRegistry(t, storagetest.StartEmbedded(t))
	r.createPods(t, 2)
	r.createPod(t, "running", onNode)
	events := r.watchPods(t)
	got, err := r.pods.DeleteCollection(r.ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p00", "p01", "running"}, names(got.(*tenancy.PodList))); diff != "" {
		t.Errorf("the reply (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"running"}, r.podNames(t)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	byName := map[string][]watch.EventType{}
	for _, event := range events(2) {
		p := event.Object.(*tenancy.Pod)
		byName[p.Name] = append(byName[p.Name], event.Type)
		if p.DeletionTimestamp == nil {
			t.Errorf("%s of %s without deletionTimestamp", event.Type, p.Name)
		}
	}
	if diff := cmp.Diff([]watch.EventType{watch.Modified, watch.Deleted}, byName["p00"]); diff != "" {
		t.Errorf("events of p00 (-want +got):\n%s", diff)
	}
	if _, err := r.pods.DeleteCollection(r.ctx, rest.ValidateAllObjectFunc, nil, nil); err != nil {
		t.Fatal(err)
	}
	if left := r.podNames(t); len(left) > 0 {
		t.Errorf("without options, which means at once, %v are left", left)
	}
}

func TestOptions(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	all := []string{"p00", "p01", "p02", "p03", "p04"}
	conflict := func(err error) bool { return apierrors.IsConflict(err) }
	none := func(err error) bool { return err == nil }
	for _, test := range []struct {
		name    string
		options metav1.DeleteOptions
		list    metainternalversion.ListOptions
		wantErr func(error) bool
		reply   []string
		left    []string
		// remaining is what a purge tells; -1 for nothing.
		remaining int
	}{
		{name: "label selector", list: metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"name": "p03"})},
			wantErr: none, reply: []string{"p03"}, left: []string{"p00", "p01", "p02", "p04"}},
		{name: "field selector", list: metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "p02")},
			wantErr: none, reply: []string{"p02"}, left: []string{"p00", "p01", "p03", "p04"}},
		{name: "limit", list: metainternalversion.ListOptions{Limit: 3},
			wantErr: none, reply: all[:3], left: all[3:], remaining: -1},
		{name: "dry run", options: metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
			wantErr: none, reply: all, left: all, remaining: 5},
		{name: "UID precondition", options: metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")},
			wantErr: conflict, left: all, remaining: -1},
		{name: "resourceVersion precondition", options: metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To("1")}},
			wantErr: conflict, left: all, remaining: -1},
		{name: "foreground", options: metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)},
			wantErr: none, reply: all, left: all, remaining: 5}, // held by a finalizer
		{name: "a resourceVersion that is no number", list: metainternalversion.ListOptions{ResourceVersion: "x"},
			wantErr: func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }, left: all, remaining: -1},
	} {
		for _, purge := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/purge=%t", test.name, purge), func(t *testing.T) {
				r := newRegistry(t, member, func(o *storage.Options) { o.Etcd.EnableGarbageCollection = true })
				r.createPods(t, len(all))
				ctx := r.ctx
				remaining := -1
				if purge {
					ctx = collection.WithPurge(ctx, collection.Purge{NamespaceUID: r.terminate(t), Done: func(_, n int) { remaining = n }})
				}
				options := test.options
				if options.PropagationPolicy == nil {
					options.PropagationPolicy = background().PropagationPolicy
				}
				got, err := r.pods.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &options, &test.list)
				if !test.wantErr(err) {
					t.Errorf("got the error %v", err)
				}
				if err == nil && !purge {
					if diff := cmp.Diff(test.reply, names(got.(*tenancy.PodList))); diff != "" {
						t.Errorf("the reply (-want +got):\n%s", diff)
					}
					if more := got.(*tenancy.PodList).Continue != ""; more != (test.list.Limit > 0) {
						t.Errorf("the reply has the continue token %q", got.(*tenancy.PodList).Continue)
					}
				}
				if diff := cmp.Diff(test.left, r.podNames(t)); diff != "" {
					t.Errorf("left (-want +got):\n%s", diff)
				}
				if purge && remaining != test.remaining {
					t.Errorf("told that %d remain, want %d", remaining, test.remaining)
				}
			})
		}
	}
}

// TestPages: a collection of several pages goes as a whole.
func TestPages(t *testing.T) {
	r := newRegistry(t, storagetest.StartEmbedded(t))
	deleter := collection.New(r.pods.Store, r.namespaces)
	deleter.SetPageSize(2)
	r.createPods(t, 5)
	got, err := deleter.DeleteCollection(r.ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := got.(*tenancy.PodList)
	if len(list.Items) != 5 || list.Continue != "" || list.RemainingItemCount != nil {
		t.Errorf("got %v with %+v", names(list), list.ListMeta)
	}
	r.createPods(t, 5)
	if _, err := deleter.DeleteCollection(purging(r.ctx, r.terminate(t)), rest.ValidateAllObjectFunc, background(), nil); err != nil {
		t.Fatal(err)
	}
	if left := r.podNames(t); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestReplaced: an object that takes the place of a listed one stays.
func TestReplaced(t *testing.T) {
	r := newRegistry(t, storagetest.StartEmbedded(t))
	r.createPods(t, 8)
	var replacement *tenancy.Pod
	var once sync.Once
	validate := func(_ context.Context, obj runtime.Object) error {
		if obj.(*tenancy.Pod).Name == "p04" {
			once.Do(func() {
				if _, _, err := r.pods.Store.Delete(r.ctx, "p04", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
					t.Error(err)
				}
				replacement = r.createPod(t, "p04")
			})
		}
		return nil
	}
	if _, err := r.pods.DeleteCollection(r.ctx, validate, &metav1.DeleteOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p04"}, r.podNames(t)); diff != "" {
		t.Fatalf("left (-want +got):\n%s", diff)
	}
	if p := r.getPod(t, "p04"); p.UID != replacement.UID || p.DeletionTimestamp != nil {
		t.Errorf("the replacement was touched: %+v", p.ObjectMeta)
	}
}

// TestChanged: an object that changes after it was listed is deleted by what it
// has become.
func TestChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*tenancy.Pod)
		stays  bool
	}{
		"to a node":   {onNode, true},
		"held":        {withFinalizer, true},
		"a new label": {func(p *tenancy.Pod) { p.Labels["new"] = "label" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, storagetest.StartEmbedded(t))
			r.createPods(t, 8)
			uid := r.terminate(t)
			var once sync.Once
			validate := func(_ context.Context, obj runtime.Object) error {
				if obj.(*tenancy.Pod).Name == "p04" {
					once.Do(func() { r.update(t, "p04", test.change) })
				}
				return nil
			}
			if _, err := r.pods.DeleteCollection(purging(r.ctx, uid), validate, background(), nil); err != nil {
				t.Fatal(err)
			}
			want := []string{}
			if test.stays {
				want = []string{"p04"}
			}
			if diff := cmp.Diff(want, r.podNames(t)); diff != "" {
				t.Fatalf("left (-want +got):\n%s", diff)
			}
			if test.stays && r.getPod(t, "p04").DeletionTimestamp == nil {
				t.Error("it was not asked to go")
			}
		})
	}
}

// TestGone: an object that is gone by its turn is no error.
func TestGone(t *testing.T) {
	for _, purge := range []bool{false, true} {
		t.Run(fmt.Sprintf("purge=%t", purge), func(t *testing.T) {
			r := newRegistry(t, storagetest.StartEmbedded(t))
			r.createPods(t, 8)
			ctx := r.ctx
			if purge {
				ctx = purging(ctx, r.terminate(t))
			}
			var once sync.Once
			validate := func(context.Context, runtime.Object) error {
				once.Do(func() {
					for i := range 8 {
						_, _, err := r.pods.Store.Delete(r.ctx, fmt.Sprintf("p%02d", i), rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0))
						if err != nil && !apierrors.IsNotFound(err) {
							t.Error(err)
						}
					}
				})
				return nil
			}
			if _, err := r.pods.DeleteCollection(ctx, validate, background(), nil); err != nil {
				t.Error(err)
			}
		})
	}
}
