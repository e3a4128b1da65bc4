// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registrytest is the registries of a server on an etcd, with a Namespace and
// content in it.
package registrytest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/tenancy/limitrange"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
	"github.com/borough-io/borough/pkg/registry/tenancy/resourcequota"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// Registry is the registries of a server. Namespace is the name of a Namespace that
// belongs to the test, and Context the context of a request in it.
type Registry struct {
	Scheme      *runtime.Scheme
	Namespaces  *namespace.REST
	Finalizer   *namespace.FinalizeREST
	Pods        *standard.REST
	LimitRanges *standard.REST
	Quotas      *standard.REST
	Unreadable  *unreadable.Objects
	Context     context.Context
	Namespace   string
}

var namespaces atomic.Int64

// New returns a Registry on the etcd member, with a Namespace that is Active. The
// stores have three workers for collections, unless change says otherwise.
func New(t testing.TB, member *embedded.Server, change ...func(*storage.Options)) *Registry {
	t.Helper()
	options := storage.NewOptions()
	options.Etcd.DeleteCollectionWorkers = 3
	for _, c := range change {
		c(options)
	}
	config := storagetest.NewConfig(member)
	backend := storagetest.NewBackend(t, options, config)

	ns, err := namespace.NewStorage(config.Scheme, backend, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Namespace.Destroy)
	pods, err := pod.NewStorage(config.Scheme, backend)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Pod.Destroy)
	limitRanges, err := limitrange.NewREST(config.Scheme, backend)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limitRanges.Destroy)
	quotas, err := resourcequota.NewREST(config.Scheme, backend)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(quotas.Destroy)
	storagetest.WaitReady(t, pods.Pod.Store)
	storagetest.WaitReady(t, quotas.Store)
	storagetest.WaitReady(t, limitRanges.Store)

	r := &Registry{
		Scheme: config.Scheme, Namespaces: ns.Namespace, Finalizer: ns.Finalize,
		Pods: pods.Pod, LimitRanges: limitRanges, Quotas: quotas, Unreadable: config.Unreadable,
	}
	r.Namespace = fmt.Sprintf("ns-%d", namespaces.Add(1))
	r.Context = request.WithNamespace(t.Context(), r.Namespace)
	r.CreateNamespace(t)
	return r
}

// CreateNamespace creates the Namespace. New has done so.
func (r *Registry) CreateNamespace(t testing.TB) {
	t.Helper()
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}
	if _, err := r.Namespaces.Create(RequestIn(t, ""), ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// UID returns the UID of the Namespace.
func (r *Registry) UID(t testing.TB) types.UID {
	t.Helper()
	obj, err := r.Namespaces.Get(RequestIn(t, ""), r.Namespace, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*tenancy.Namespace).UID
}

// Terminate deletes the Namespace, which becomes Terminating, and returns its UID.
func (r *Registry) Terminate(t testing.TB) types.UID {
	t.Helper()
	uid := r.UID(t)
	if _, _, err := r.Namespaces.Delete(RequestIn(t, ""), r.Namespace, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return uid
}

// RemoveNamespace removes the finalizers from the Namespace, which has to be
// Terminating and empty.
func (r *Registry) RemoveNamespace(t testing.TB) {
	t.Helper()
	r.UpdateNamespace(t, func(ns *tenancy.Namespace) { ns.Spec.Finalizers = nil })
}

// UpdateNamespace changes the finalizers of the Namespace.
func (r *Registry) UpdateNamespace(t testing.TB, change func(*tenancy.Namespace)) {
	t.Helper()
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		ns := old.DeepCopyObject().(*tenancy.Namespace)
		change(ns)
		return ns, nil
	})
	if _, _, err := r.Finalizer.Update(RequestIn(t, ""), r.Namespace, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// CreatePod creates a Pod with a grace period of 30 seconds.
func (r *Registry) CreatePod(t testing.TB, name string, modify ...func(*tenancy.Pod)) *tenancy.Pod {
	t.Helper()
	p := &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace, Labels: map[string]string{"name": name}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Image: "example.com/image:1",
				ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			SecurityContext:               &corev1.PodSecurityContext{},
			TerminationGracePeriodSeconds: new(int64(30)),
		},
	}
	for _, m := range modify {
		m(p)
	}
	created, err := r.Pods.Create(r.Context, p, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.(*tenancy.Pod)
}

// CreatePods creates n Pods: p00, p01 and so on.
func (r *Registry) CreatePods(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		r.CreatePod(t, fmt.Sprintf("p%02d", i))
	}
}

// OnNode assigns a new Pod to a node, so that it has a grace period.
func OnNode(p *tenancy.Pod) { p.Spec.NodeName = "node" }

// WithFinalizer adds a finalizer to a new Pod.
func WithFinalizer(p *tenancy.Pod) { p.Finalizers = []string{"example.com/hold"} }

// CreateLimitRange creates a LimitRange.
func (r *Registry) CreateLimitRange(t testing.TB, name string) {
	t.Helper()
	lr := &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace}}
	if _, err := r.LimitRanges.Create(r.Context, lr, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// CreateQuota creates a ResourceQuota.
func (r *Registry) CreateQuota(t testing.TB, name string, hard corev1.ResourceList) {
	t.Helper()
	quota := &tenancy.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := r.Quotas.Create(r.Context, quota, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// UpdatePod changes a Pod. It bypasses the strategy.
func (r *Registry) UpdatePod(t testing.TB, name string, change func(*tenancy.Pod)) {
	t.Helper()
	past := *r.Pods.Store
	past.UpdateStrategy = anything{past.UpdateStrategy}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(*tenancy.Pod)
		change(changed)
		return changed, nil
	})
	if _, _, err := past.Update(r.Context, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

type anything struct{ rest.RESTUpdateStrategy }

func (anything) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

func (anything) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// GetPod returns the Pod, or nil if it does not exist.
func (r *Registry) GetPod(t testing.TB, name string) *tenancy.Pod {
	t.Helper()
	obj, err := r.Pods.Get(r.Context, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*tenancy.Pod)
}

// PodNames returns the names of the Pods.
func (r *Registry) PodNames(t testing.TB) []string {
	t.Helper()
	list, err := r.Pods.List(r.Context, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Names(list.(*tenancy.PodList))
}

// Names returns the names of the Pods in a list.
func Names(list *tenancy.PodList) []string {
	names := []string{}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

// WatchPods starts a watch of the Pods. The function that it returns waits for a
// number of Pods to be deleted, and returns the events until then.
func (r *Registry) WatchPods(t testing.TB) func(deleted int) []watch.Event {
	t.Helper()
	list, err := r.Pods.List(r.Context, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.Pods.Watch(r.Context, &metainternalversion.ListOptions{ResourceVersion: list.(*tenancy.PodList).ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return func(deleted int) (events []watch.Event) {
		t.Helper()
		for deleted > 0 {
			event, ok := <-w.ResultChan()
			if !ok {
				t.Fatalf("the watch ended after %v", events)
			}
			if shared, ok := event.Object.(runtime.CacheableObject); ok {
				event.Object = shared.GetObject()
			}
			events = append(events, event)
			if event.Type == watch.Deleted {
				deleted--
			}
		}
		return events
	}
}

// RequestIn returns the context of a request in a namespace; empty means a
// cluster-scoped request.
func RequestIn(t testing.TB, namespace string) context.Context {
	return request.WithNamespace(t.Context(), namespace)
}
