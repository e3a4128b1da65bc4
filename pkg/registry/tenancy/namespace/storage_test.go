// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// newStorage returns the storage of a server. It has its own etcd, because the tests of the
// library watch from revision 1.
func newStorage(t *testing.T) Storage {
	t.Helper()
	config := storagetest.NewConfig(storagetest.StartEmbedded(t, func(c *embedded.Config) { c.Ephemeral = true }))
	storage, err := NewStorage(config.Scheme, storagetest.NewBackend(t, storage.NewOptions(), config), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Namespace.Destroy)
	storagetest.WaitReady(t, storage.Namespace.store)
	return storage
}

func newContext() context.Context {
	return genericapirequest.WithNamespace(context.Background(), metav1.NamespaceNone)
}

func newNamespace(name string, finalizers ...tenancy.FinalizerName) *tenancy.Namespace {
	return &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: tenancy.NamespaceSpec{Finalizers: finalizers}}
}

// TestContract runs the tests that the library has for every registry.
func TestContract(t *testing.T) {
	contract := func(t *testing.T) *genericregistrytest.Tester {
		return genericregistrytest.New(t, newStorage(t).Namespace.store).ClusterScope()
	}
	valid := func() *tenancy.Namespace { return newNamespace("foo") }
	t.Run("create", func(t *testing.T) {
		contract(t).TestCreate(&tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "foo-"}},
			newNamespace(""), newNamespace("not.a.label"), newNamespace("foo", "no such finalizer"))
	})
	t.Run("update", func(t *testing.T) {
		contract(t).TestUpdate(valid(), func(obj runtime.Object) runtime.Object {
			obj.(*tenancy.Namespace).Annotations = map[string]string{"a": "b"}
			return obj
		})
	})
	t.Run("get", func(t *testing.T) { contract(t).TestGet(valid()) })
	t.Run("list", func(t *testing.T) { contract(t).TestList(valid()) })
	t.Run("watch", func(t *testing.T) {
		contract(t).TestWatch(valid(),
			[]labels.Set{{tenancy.LabelMetadataName: "foo"}}, []labels.Set{{"a": "b"}},
			[]fields.Set{{"metadata.name": "foo"}},
			[]fields.Set{{"metadata.name": "bar"}, {"status.phase": "Terminating"}})
	})
}

// step is one call in the life of a Namespace.
type step func(ctx context.Context, s Storage) (runtime.Object, error)

func create(finalizers ...tenancy.FinalizerName) step {
	return func(ctx context.Context, s Storage) (runtime.Object, error) {
		ns := newNamespace("foo", finalizers...)
		ns.Status.Phase = tenancy.NamespaceTerminating // is not taken
		return s.Namespace.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	}
}

func remove(options metav1.DeleteOptions) step {
	return func(ctx context.Context, s Storage) (runtime.Object, error) {
		obj, _, err := s.Namespace.Delete(ctx, "foo", rest.ValidateAllObjectFunc, &options)
		return obj, err
	}
}

type updater interface {
	Update(context.Context, string, rest.UpdatedObjectInfo, rest.ValidateObjectFunc, rest.ValidateObjectUpdateFunc, bool, *metav1.UpdateOptions) (runtime.Object, bool, error)
}

func update(through func(Storage) updater, change func(*tenancy.Namespace)) step {
	return func(ctx context.Context, s Storage) (runtime.Object, error) {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			ns := old.DeepCopyObject().(*tenancy.Namespace)
			change(ns)
			return ns, nil
		})
		obj, _, err := through(s).Update(ctx, "foo", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		return obj, err
	}
}

func resource(s Storage) updater { return s.Namespace }
func status(s Storage) updater   { return s.Status }
func finalize(s Storage) updater { return s.Finalize }

func specFinalizers(names ...tenancy.FinalizerName) func(*tenancy.Namespace) {
	return func(ns *tenancy.Namespace) { ns.Spec.Finalizers = names }
}

func protected(on bool) func(*tenancy.Namespace) {
	return func(ns *tenancy.Namespace) { ns.Spec.DeletionProtection = on }
}

func metadataFinalizers(names ...string) func(*tenancy.Namespace) {
	return func(ns *tenancy.Namespace) { ns.Finalizers = names }
}

// state is what a test looks at; nil stands for a Namespace that is gone.
type state struct {
	Phase      tenancy.NamespacePhase
	Deleting   bool
	Spec       []tenancy.FinalizerName
	Finalizers []string
}

func (s Storage) state(t *testing.T, ctx context.Context) *state {
	t.Helper()
	obj, err := s.Namespace.Get(ctx, "foo", &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	ns := obj.(*tenancy.Namespace)
	if ns.DeletionGracePeriodSeconds != nil && *ns.DeletionGracePeriodSeconds != 0 {
		t.Errorf("a Namespace has a grace period: %d", *ns.DeletionGracePeriodSeconds)
	}
	return &state{ns.Status.Phase, ns.DeletionTimestamp != nil, ns.Spec.Finalizers, ns.Finalizers}
}

func TestLifeCycle(t *testing.T) {
	const kube, other = tenancy.FinalizerKubernetes, tenancy.FinalizerName("openshift.com/origin")
	active := func(spec ...tenancy.FinalizerName) *state { return &state{Phase: tenancy.NamespaceActive, Spec: spec} }
	terminating := func(finalizers []string, spec ...tenancy.FinalizerName) *state {
		return &state{tenancy.NamespaceTerminating, true, spec, finalizers}
	}
	policy := func(p metav1.DeletionPropagation) metav1.DeleteOptions {
		return metav1.DeleteOptions{PropagationPolicy: &p}
	}
	wrong, dryRun := types.UID("wrong"), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	background := policy(metav1.DeletePropagationBackground)
	const protection = `Operation cannot be fulfilled on namespaces.tenancy.borough.io "foo": it is protected from deletion by spec.deletionProtection; ` +
		`to allow deletion: kubectl patch namespaces.tenancy.borough.io foo --type=merge -p '{"spec":{"deletionProtection":false}}'`

	for _, tc := range []struct {
		name    string
		steps   []step
		want    *state
		wantErr string // of the last step
	}{
		{"created", []step{create()}, active(kube), ""},
		{"created with another finalizer", []step{create(other)}, active(other, kube), ""},
		{"created with the finalizer", []step{create(kube, other)}, active(kube, other), ""},
		{"created twice", []step{create(), create()}, active(kube), `namespaces.tenancy.borough.io "foo" already exists`},
		{"created over a terminating one", []step{create(), remove(background), create()}, terminating(nil, kube), "object is being deleted"},
		{"updated", []step{create(), update(resource, specFinalizers())}, active(kube), ""},
		{"phase updated", []step{create(), update(resource, func(ns *tenancy.Namespace) { ns.Status.Phase = tenancy.NamespaceTerminating })}, active(kube), ""},
		{"status cannot finalize", []step{create(), update(status, specFinalizers())}, active(kube), ""},
		{"status cannot terminate", []step{create(), update(status, func(ns *tenancy.Namespace) { ns.Status.Phase = tenancy.NamespaceTerminating })}, active(kube), "may only be 'Active'"},
		{"status cannot revive", []step{create(), remove(background), update(status, func(ns *tenancy.Namespace) { ns.Status.Phase = tenancy.NamespaceActive })}, terminating(nil, kube), "may only be 'Terminating'"},
		{"finalize keeps the status", []step{create(), update(finalize, func(ns *tenancy.Namespace) { ns.Status.Phase = "" })}, active(kube), ""},
		{"finalizer added", []step{create(), update(finalize, specFinalizers(kube, other))}, active(kube, other), ""},
		{"bad finalizer", []step{create(), update(finalize, specFinalizers("bad"))}, active(kube), "spec.finalizers[0]"},

		{"absent", []step{remove(background)}, nil, `namespaces.tenancy.borough.io "foo" not found`},
		{"deleted", []step{create(), remove(background)}, terminating(nil, kube), ""},
		{"deleted twice", []step{create(), remove(background), remove(background)}, terminating(nil, kube), ""},
		{"dry run", []step{create(), remove(dryRun)}, active(kube), ""},
		{"dry run of an unheld one", []step{create(), update(finalize, specFinalizers()), remove(dryRun)}, active(), ""},
		{"wrong UID", []step{create(), remove(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})}, active(kube), "UID in precondition: wrong, UID in object meta: "},
		{"wrong version", []step{create(), remove(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}})}, active(kube), "ResourceVersion in precondition: 1, ResourceVersion in object meta: "},
		{"orphan", []step{create(), update(resource, metadataFinalizers("b/b", "a/a")), remove(policy(metav1.DeletePropagationOrphan))}, terminating([]string{"b/b", "a/a", metav1.FinalizerOrphanDependents}, kube), ""},
		{"foreground", []step{create(), remove(policy(metav1.DeletePropagationForeground))}, terminating([]string{metav1.FinalizerDeleteDependents}, kube), ""},
		{"background takes them away", []step{create(), update(resource, metadataFinalizers(metav1.FinalizerOrphanDependents, "a/a")), remove(background)}, terminating([]string{"a/a"}, kube), ""},
		{"no policy keeps them", []step{create(), update(resource, metadataFinalizers(metav1.FinalizerOrphanDependents)), remove(metav1.DeleteOptions{})}, terminating([]string{metav1.FinalizerOrphanDependents}, kube), ""},

		{"protected", []step{create(), update(resource, protected(true)), remove(background)}, active(kube), protection},
		{"protected and unheld", []step{create(), update(resource, protected(true)), update(finalize, specFinalizers()), remove(background)}, active(), protection},
		{"protected, dry run", []step{create(), update(resource, protected(true)), remove(dryRun)}, active(kube), protection},
		{"protected, wrong UID", []step{create(), update(resource, protected(true)), remove(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})}, active(kube), "UID in precondition"},
		{"protection lifted", []step{create(), update(resource, protected(true)), update(resource, protected(false)), remove(background)}, terminating(nil, kube), ""},
		{"status cannot lift protection", []step{create(), update(resource, protected(true)), update(status, protected(false)), remove(background)}, active(kube), protection},
		{"finalize cannot lift protection", []step{create(), update(resource, protected(true)), update(finalize, protected(false)), remove(background)}, active(kube), protection},
		{"protected too late", []step{create(), remove(background), update(resource, protected(true))}, terminating(nil, kube), "spec.deletionProtection: Forbidden: may not be set on a namespace that is being deleted"},

		{"finalized after", []step{create(), remove(background), update(finalize, specFinalizers())}, nil, ""},
		{"finalized before", []step{create(), update(finalize, specFinalizers()), remove(background)}, nil, ""},
		{"one of two agents", []step{create(other), remove(background), update(finalize, specFinalizers(other))}, terminating(nil, other), ""},
		{"both agents", []step{create(other), remove(background), update(finalize, specFinalizers(other)), update(finalize, specFinalizers())}, nil, ""},
		{"metadata finalizer holds", []step{create(), update(resource, metadataFinalizers("a/a")), remove(background), update(finalize, specFinalizers())}, terminating([]string{"a/a"}), ""},
		{"metadata finalizer goes by update", []step{create(), update(resource, metadataFinalizers("a/a")), remove(background), update(finalize, specFinalizers()), update(resource, metadataFinalizers())}, nil, ""},
		{"metadata finalizer goes by status", []step{create(), update(resource, metadataFinalizers("a/a")), remove(background), update(finalize, specFinalizers()), update(status, metadataFinalizers())}, nil, ""},
		{"spec finalizer still holds", []step{create(), update(resource, metadataFinalizers("a/a")), remove(background), update(resource, metadataFinalizers())}, terminating(nil, kube), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			storage, ctx := newStorage(t), newContext()
			var err error
			for i, step := range tc.steps {
				if _, err = step(ctx, storage); err != nil && i < len(tc.steps)-1 {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, storage.state(t, ctx), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTerminationNamesFinalizers checks that the server updates the finalizers in
// status.termination with every change of them, and that clients cannot.
func TestTerminationNamesFinalizers(t *testing.T) {
	const kube, other = tenancy.FinalizerKubernetes, tenancy.FinalizerName("openshift.com/origin")
	storage, ctx := newStorage(t), newContext()
	set := func(termination *tenancy.NamespaceTermination) func(*tenancy.Namespace) {
		return func(ns *tenancy.Namespace) { ns.Status.Termination = termination }
	}
	create := func(ctx context.Context, s Storage) (runtime.Object, error) {
		ns := newNamespace("foo", kube, other)
		set(&tenancy.NamespaceTermination{})(ns)
		return s.Namespace.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	}
	held := func(metadata []string, spec ...tenancy.FinalizerName) *tenancy.NamespaceTermination {
		return &tenancy.NamespaceTermination{LastError: "e", SpecFinalizers: spec, MetadataFinalizers: metadata}
	}
	inCoreGroup := func(do step) step {
		info := &genericapirequest.RequestInfo{IsResourceRequest: true, Resource: "namespaces"}
		return func(ctx context.Context, s Storage) (runtime.Object, error) {
			return do(genericapirequest.WithRequestInfo(ctx, info), s)
		}
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("example.com/%d", i)
	}
	for _, step := range []struct {
		name string
		do   step
		want *tenancy.NamespaceTermination
	}{
		{"created", create, nil},
		{"metadata finalizers", update(resource, metadataFinalizers(append([]string{"a/a", "b/b"}, many...)...)), nil},
		{"deleted", remove(metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}), nil},
		{"status", update(status, set(&tenancy.NamespaceTermination{LastError: "e", SpecFinalizers: []tenancy.FinalizerName{"wrong"}})), held(append([]string{"a/a", "b/b"}, many[:18]...), kube, other)},
		{"update", update(resource, metadataFinalizers("b/b")), held([]string{"b/b"}, kube, other)},
		{"update of the status", update(resource, set(nil)), held([]string{"b/b"}, kube, other)},
		{"status in the core group", inCoreGroup(update(status, set(nil))), held([]string{"b/b"}, kube, other)},
		{"finalize", update(finalize, specFinalizers(other)), held([]string{"b/b"}, other)},
		{"finalize of the status", update(finalize, set(nil)), held([]string{"b/b"}, other)},
		{"fewer", update(resource, metadataFinalizers()), held(nil, other)},
		{"nothing to report", update(status, set(nil)), nil},
	} {
		if _, err := step.do(ctx, storage); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		obj, err := storage.Namespace.Get(ctx, "foo", &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, obj.(*tenancy.Namespace).Status.Termination, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: termination (-want +got):\n%s", step.name, diff)
		}
	}
}

// TestTerminationNamesFinalizersOfThePolicy changes the policy of a deletion, which changes the
// finalizers in the metadata.
func TestTerminationNamesFinalizersOfThePolicy(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	delete := func(policy metav1.DeletionPropagation, dryRun ...string) step {
		return remove(metav1.DeleteOptions{PropagationPolicy: &policy, DryRun: dryRun})
	}
	for _, step := range []step{
		create(), update(resource, metadataFinalizers("a/a")), delete(metav1.DeletePropagationBackground), update(finalize, specFinalizers()),
		update(status, func(ns *tenancy.Namespace) { ns.Status.Termination = &tenancy.NamespaceTermination{} }),
	} {
		if _, err := step(ctx, storage); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		policy metav1.DeletionPropagation
		want   []string
	}{
		{metav1.DeletePropagationOrphan, []string{"a/a", metav1.FinalizerOrphanDependents}},
		{metav1.DeletePropagationBackground, []string{"a/a"}},
	} {
		dryRun, err := delete(tc.policy, metav1.DryRunAll)(ctx, storage)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := delete(tc.policy)(ctx, storage); err != nil {
			t.Fatal(err)
		}
		obj, err := storage.Namespace.Get(ctx, "foo", &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range []runtime.Object{dryRun, obj} {
			ns := obj.(*tenancy.Namespace)
			if !slices.Equal(ns.Finalizers, tc.want) || !slices.Equal(ns.Status.Termination.MetadataFinalizers, tc.want) {
				t.Errorf("%s: the finalizers are %v, in status.termination %v; want %v", tc.policy, ns.Finalizers, ns.Status.Termination.MetadataFinalizers, tc.want)
			}
		}
	}
}

func TestRemovedNamespaceIsReturned(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	for _, step := range []step{create(), update(finalize, specFinalizers())} {
		if _, err := step(ctx, storage); err != nil {
			t.Fatal(err)
		}
	}
	obj, deleted, err := storage.Namespace.Delete(ctx, "foo", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns, ok := obj.(*tenancy.Namespace)
	if !ok || !deleted || ns.Name != "foo" || ns.Status.Phase != tenancy.NamespaceTerminating {
		t.Errorf("got %#v, deleted: %v", obj, deleted)
	}
}

// TestFinalizeByPost has an agent POST to finalize.
func TestFinalizeByPost(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	for _, step := range []step{create(), remove(metav1.DeleteOptions{})} {
		if _, err := step(ctx, storage); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storage.Finalize.Create(ctx, "foo", newNamespace("foo"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := storage.state(t, ctx); got != nil {
		t.Errorf("still there: %+v", got)
	}
}
