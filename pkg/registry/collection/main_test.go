// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection_test

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
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/collection"
	limitrange "github.com/borough-io/borough/pkg/registry/tenancy/limitrange/storage"
	namespace "github.com/borough-io/borough/pkg/registry/tenancy/namespace/storage"
	pod "github.com/borough-io/borough/pkg/registry/tenancy/pod/storage"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

func TestMain(m *testing.M) { storagetest.Main(m) }

// registry is the registries as a server has them, on an etcd of their own. The
// namespace is that of the test.
type registry struct {
	namespaces  *namespace.REST
	finalize    *namespace.FinalizeREST
	pods        *pod.REST
	limitRanges *limitrange.REST
	ctx         context.Context
	name        string
}

var namespaces atomic.Int64

// newRegistry returns the registries and a Namespace that is not being deleted.
func newRegistry(t testing.TB, member *embedded.Server, change ...func(*storage.Options)) *registry {
	t.Helper()
	options := storage.NewOptions()
	options.Etcd.SkipHealthEndpoints = true // they end with a server, and there is none
	options.Etcd.DeleteCollectionWorkers = 3
	for _, c := range change {
		c(options)
	}
	config := storagetest.NewConfig(member)
	getter := storagetest.NewServerConfig(t, options, config).RESTOptionsGetter

	ns, err := namespace.NewStorage(config.Scheme, getter, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Namespace.Destroy)
	pods, err := pod.NewStorage(config.Scheme, getter, ns.Namespace, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Pod.Destroy)
	limitRanges, err := limitrange.NewStorage(config.Scheme, getter, ns.Namespace, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limitRanges.LimitRange.Destroy)
	storagetest.WaitReady(t, pods.Pod.Store)
	storagetest.WaitReady(t, limitRanges.LimitRange.Store)

	r := &registry{namespaces: ns.Namespace, finalize: ns.Finalize, pods: pods.Pod, limitRanges: limitRanges.LimitRange}
	r.name = fmt.Sprintf("ns-%d", namespaces.Add(1))
	r.ctx = request.WithNamespace(t.Context(), r.name)
	r.createNamespace(t)
	return r
}

func (r *registry) createNamespace(t testing.TB) {
	t.Helper()
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	if _, err := r.namespaces.Create(requestIn(t, ""), ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// uid is that of the Namespace.
func (r *registry) uid(t testing.TB) types.UID {
	t.Helper()
	obj, err := r.namespaces.Get(requestIn(t, ""), r.name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*tenancy.Namespace).UID
}

// terminate has the Namespace deleted, which waits for its content, and returns
// its UID.
func (r *registry) terminate(t testing.TB) types.UID {
	t.Helper()
	uid := r.uid(t)
	if _, _, err := r.namespaces.Delete(requestIn(t, ""), r.name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return uid
}

// removeNamespace takes the finalizers away from the Namespace, which is being
// deleted and empty.
func (r *registry) removeNamespace(t testing.TB) {
	t.Helper()
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		ns := old.DeepCopyObject().(*tenancy.Namespace)
		ns.Spec.Finalizers = nil
		return ns, nil
	})
	if _, _, err := r.finalize.Update(requestIn(t, ""), r.name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createPod creates a Pod with a grace period of 30 seconds.
func (r *registry) createPod(t testing.TB, name string, modify ...func(*tenancy.Pod)) *tenancy.Pod {
	t.Helper()
	p := &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.name, Labels: map[string]string{"name": name}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Image: "example.com/image:1",
				ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			SecurityContext:               &corev1.PodSecurityContext{},
			TerminationGracePeriodSeconds: ptr.To(int64(30)),
		},
	}
	for _, m := range modify {
		m(p)
	}
	created, err := r.pods.Create(r.ctx, p, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.(*tenancy.Pod)
}

func (r *registry) createPods(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		r.createPod(t, fmt.Sprintf("p%02d", i))
	}
}

func onNode(p *tenancy.Pod)        { p.Spec.NodeName = "node" }
func withFinalizer(p *tenancy.Pod) { p.Finalizers = []string{"example.com/hold"} }

func (r *registry) createLimitRange(t testing.TB, name string) {
	t.Helper()
	lr := &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.name}}
	if _, err := r.limitRanges.Create(r.ctx, lr, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// update writes a change to a Pod, past its strategy.
func (r *registry) update(t testing.TB, name string, change func(*tenancy.Pod)) {
	t.Helper()
	past := *r.pods.Store
	past.UpdateStrategy = anything{past.UpdateStrategy}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(*tenancy.Pod)
		change(changed)
		return changed, nil
	})
	if _, _, err := past.Update(r.ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

type anything struct{ rest.RESTUpdateStrategy }

func (anything) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

func (anything) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// getPod returns the Pod, or nil if there is none.
func (r *registry) getPod(t testing.TB, name string) *tenancy.Pod {
	t.Helper()
	obj, err := r.pods.Get(r.ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*tenancy.Pod)
}

func (r *registry) podNames(t testing.TB) []string {
	t.Helper()
	list, err := r.pods.List(r.ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return names(list.(*tenancy.PodList))
}

func names(list *tenancy.PodList) []string {
	names := []string{}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

// watchPods returns the events from now on, until none has come for that many
// objects to be deleted.
func (r *registry) watchPods(t testing.TB) func(deleted int) []watch.Event {
	t.Helper()
	list, err := r.pods.List(r.ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.pods.Watch(r.ctx, &metainternalversion.ListOptions{ResourceVersion: list.(*tenancy.PodList).ResourceVersion})
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

// background are the options of a purge.
func background() *metav1.DeleteOptions {
	return &metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
}

func purging(ctx context.Context, uid types.UID) context.Context {
	return collection.WithPurge(ctx, collection.Purge{NamespaceUID: uid})
}

func requestIn(t testing.TB, namespace string) context.Context {
	return request.WithNamespace(t.Context(), namespace)
}
