// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// smallMember returns an etcd that can be filled.
func smallMember(t *testing.T) *embedded.Server {
	return storagetest.StartEmbedded(t, func(c *embedded.Config) { c.QuotaBytes = storagetest.SmallQuota })
}

func collectGarbage(o *storage.Options) { o.Etcd.EnableGarbageCollection = true }

func none(err error) bool { return err == nil }

// TestPods deletes Pods while etcd is full.
func TestPods(t *testing.T) {
	member := smallMember(t)
	r := registrytest.New(t, member, collectGarbage)
	marked := func(p *tenancy.Pod) *tenancy.Pod {
		obj, _, err := r.Pods.Delete(r.Context, p.Name, rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(30))
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*tenancy.Pod)
	}
	policy := func(p metav1.DeletionPropagation) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{PropagationPolicy: &p}
	}
	type test struct {
		name     string
		create   func(name string) *tenancy.Pod
		options  *metav1.DeleteOptions
		validate error
		wantErr  func(error) bool
		stays    bool
	}
	plain := func(name string) *tenancy.Pod { return r.CreatePod(t, name) }
	onNode := func(name string) *tenancy.Pod { return r.CreatePod(t, name, registrytest.OnNode) }
	tests := []test{
		{name: "no options", create: plain, wantErr: none},
		{name: "default options", create: plain, options: &metav1.DeleteOptions{}, wantErr: none},
		{name: "background", create: plain, options: policy(metav1.DeletePropagationBackground), wantErr: none},
		{name: "foreground", create: plain, options: policy(metav1.DeletePropagationForeground), wantErr: tenancyerrors.IsStorageFull, stays: true},
		{name: "orphan", create: plain, options: policy(metav1.DeletePropagationOrphan), wantErr: tenancyerrors.IsStorageFull, stays: true},
		//lint:ignore SA1019 deprecated, but clients send it
		{name: "orphan dependents", create: plain, options: &metav1.DeleteOptions{OrphanDependents: new(true)}, wantErr: tenancyerrors.IsStorageFull, stays: true},
		//lint:ignore SA1019 deprecated, but clients send it
		{name: "without orphans", create: plain, options: &metav1.DeleteOptions{OrphanDependents: new(false)}, wantErr: none},
		{name: "finalizer", create: func(name string) *tenancy.Pod { return r.CreatePod(t, name, registrytest.WithFinalizer) },
			options: &metav1.DeleteOptions{}, wantErr: tenancyerrors.IsStorageFull, stays: true},
		{name: "on a node", create: onNode, options: &metav1.DeleteOptions{}, wantErr: tenancyerrors.IsStorageFull, stays: true},
		{name: "on a node at once", create: onNode, options: metav1.NewDeleteOptions(0), wantErr: none},
		{name: "marked", create: func(name string) *tenancy.Pod { return marked(onNode(name)) },
			options: metav1.NewDeleteOptions(20), wantErr: tenancyerrors.IsStorageFull, stays: true},
		{name: "confirmed", create: func(name string) *tenancy.Pod { return marked(onNode(name)) },
			options: metav1.NewDeleteOptions(0), wantErr: none},
		{name: "other UID", create: plain, options: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")},
			wantErr: apierrors.IsConflict, stays: true},
		{name: "other revision", create: plain, options: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}},
			wantErr: apierrors.IsConflict, stays: true},
		{name: "dry run", create: plain, options: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, wantErr: none, stays: true},
		{name: "rejected", create: plain, options: &metav1.DeleteOptions{}, validate: apierrors.NewBadRequest("no"), wantErr: apierrors.IsBadRequest, stays: true},
	}
	pods := map[string]*tenancy.Pod{}
	for i, test := range tests {
		pods[test.name] = test.create(fmt.Sprintf("p%02d", i))
	}
	right := pods["default options"]
	tests[1].options.Preconditions = &metav1.Preconditions{UID: &right.UID, ResourceVersion: &right.ResourceVersion}
	storagetest.Fill(t, member.Client())

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := pods[test.name]
			validate := func(context.Context, runtime.Object) error { return test.validate }
			obj, removed, err := r.Pods.Delete(r.Context, pod.Name, validate, test.options)
			if !test.wantErr(err) {
				t.Fatalf("got the error %v", err)
			}
			if left := r.GetPod(t, pod.Name) != nil; left != test.stays {
				t.Errorf("it is left: %v, want %v", left, test.stays)
			}
			if err != nil {
				return
			}
			got := obj.(*tenancy.Pod)
			if !removed || got.DeletionTimestamp == nil || *got.DeletionGracePeriodSeconds != 0 || got.UID != pod.UID || got.Generation != 2 {
				t.Errorf("got removed=%v and %+v", removed, got.ObjectMeta)
			}
			if !test.stays && revision(t, got) <= revision(t, pod) {
				t.Errorf("got the resourceVersion %s for the removal of a Pod at %s", got.ResourceVersion, pod.ResourceVersion)
			}
		})
	}
}

func revision(t *testing.T, pod *tenancy.Pod) int64 {
	t.Helper()
	revision, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// TestChanged assigns a Pod to a node between the two tries to delete it.
func TestChanged(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreatePod(t, "p")
	store := &fullStore{Interface: r.Pods.Storage.Storage, full: true}
	r.Pods.Storage.Storage = store
	calls := 0
	validate := func(context.Context, runtime.Object) error {
		if calls++; calls == 2 {
			store.full = false
			r.UpdatePod(t, "p", registrytest.OnNode)
		}
		return nil
	}
	_, _, err := r.Pods.Delete(r.Context, "p", validate, &metav1.DeleteOptions{})
	if !tenancyerrors.IsStorageFull(err) {
		t.Errorf("got the error %v", err)
	}
	if p := r.GetPod(t, "p"); p == nil || p.DeletionTimestamp != nil {
		t.Errorf("it is %+v, want it unmarked", p)
	}
}

// fullStore is a store on an etcd that is full until it is no longer.
type fullStore struct {
	apistorage.Interface
	full bool
}

func (s *fullStore) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object) error {
	checked := func(obj runtime.Object, meta apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		obj, ttl, err := update(obj, meta)
		if err == nil && s.full {
			err = tenancyerrors.NewStorageFull(rpctypes.ErrNoSpace)
		}
		return obj, ttl, err
	}
	return s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, checked, cached)
}

// TestCollection deletes collections while etcd is full. More Pods have to wait than
// there are workers.
func TestCollection(t *testing.T) {
	member := smallMember(t)
	r := registrytest.New(t, member)
	var held []string
	for i := range 5 {
		held = append(held, r.CreatePod(t, fmt.Sprintf("held-%d", i), registrytest.OnNode).Name)
	}
	r.CreatePods(t, 10)
	r.CreateLimitRange(t, "l")
	storagetest.Fill(t, member.Client())
	events := r.WatchPods(t)

	_, err := r.Pods.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, nil)
	if !tenancyerrors.IsStorageFull(err) {
		t.Errorf("got the error %v, want that of the Pods that have to wait", err)
	}
	if diff := cmp.Diff(held, r.PodNames(t)); diff != "" {
		t.Fatalf("left (-want +got):\n%s", diff)
	}
	for _, event := range events(10) {
		if event.Type != watch.Deleted {
			t.Errorf("got the event %s", event.Type)
		}
	}
	if _, err := r.LimitRanges.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, nil); err != nil {
		t.Errorf("the LimitRanges: %v", err)
	}
	if _, err := r.Pods.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0), nil); err != nil {
		t.Errorf("at once: %v", err)
	}
	if left := r.PodNames(t); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestNamespaces deletes Namespaces while etcd is full.
func TestNamespaces(t *testing.T) {
	member := smallMember(t)
	unheld := func(r *registrytest.Registry) {
		r.UpdateNamespace(t, func(ns *tenancy.Namespace) { ns.Spec.Finalizers = nil })
	}
	type test struct {
		name     string
		prepare  func(r *registrytest.Registry)
		options  metav1.DeleteOptions
		validate error
		wantErr  func(error) bool
		stays    bool
		*registrytest.Registry
	}
	tests := []*test{
		{name: "with the controller's finalizer", prepare: func(*registrytest.Registry) {}, wantErr: tenancyerrors.IsStorageFull, stays: true},
		{name: "without", prepare: unheld, wantErr: none},
		{name: "foreground", prepare: unheld, options: metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)},
			wantErr: tenancyerrors.IsStorageFull, stays: true},
		{name: "with content", prepare: func(r *registrytest.Registry) { unheld(r); r.CreatePods(t, 1) }, wantErr: tenancyerrors.IsStorageFull, stays: true},
		{name: "dry run", prepare: unheld, options: metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, wantErr: none, stays: true},
		{name: "other UID", prepare: unheld, options: metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}, wantErr: apierrors.IsConflict, stays: true},
		{name: "rejected", prepare: unheld, validate: errors.New("no"), wantErr: func(err error) bool { return err != nil }, stays: true},
	}
	for _, test := range tests {
		test.Registry = registrytest.New(t, member, collectGarbage)
		test.prepare(test.Registry)
	}
	terminating := registrytest.New(t, member)
	terminating.CreatePod(t, "p")
	terminating.Terminate(t)
	storagetest.Fill(t, member.Client())

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, uid := registrytest.RequestIn(t, ""), test.UID(t)
			obj, removed, err := test.Namespaces.Delete(ctx, test.Namespace, func(context.Context, runtime.Object) error { return test.validate }, &test.options)
			if !test.wantErr(err) {
				t.Fatalf("got the error %v", err)
			}
			if _, err := test.Namespaces.Get(ctx, test.Namespace, &metav1.GetOptions{}); apierrors.IsNotFound(err) == test.stays {
				t.Errorf("read it: %v", err)
			}
			if err != nil {
				return
			}
			ns := obj.(*tenancy.Namespace)
			if removed == test.stays || ns.UID != uid || ns.DeletionTimestamp == nil || ns.Status.Phase != tenancy.NamespaceTerminating {
				t.Errorf("got removed=%v and %+v", removed, ns)
			}
		})
	}
	t.Run("termination", func(t *testing.T) {
		terminating.Context = registrytest.RequestIn(t, terminating.Namespace)
		if _, err := terminating.Pods.DeleteCollection(terminating.Context, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		terminating.RemoveNamespace(t)
		if _, err := terminating.Namespaces.Get(registrytest.RequestIn(t, ""), terminating.Namespace, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("read it: %v", err)
		}
	})
}
