// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/corepod/defaults"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var scheme = storagetest.NewConfig(nil).Scheme

const namespace = "test"

// newStorage returns the storage of a server that has the Namespaces of the tests, those of
// the library included. It has its own etcd, and its watch cache is ready before anything is
// created, because the tests of the library watch from revision 1.
func newStorage(t *testing.T) Storage {
	t.Helper()
	etcd := storagetest.StartEmbedded(t, func(c *embedded.Config) { c.Ephemeral = true })
	stores := storagetest.NewStores(t, storage.NewOptions(), storagetest.NewConfig(etcd))
	storage, err := NewStorage(scheme, stores.Backend)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Pod.Destroy)
	storagetest.WaitReady(t, storage.Pod.Store)

	ctx := genericapirequest.WithNamespace(t.Context(), metav1.NamespaceNone)
	for _, name := range []string{namespace, metav1.NamespaceDefault, "not-default2", "bar1", "bar2", "bar3", "bar4"} {
		ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := stores.Namespaces.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return storage
}

func newContext(t *testing.T) context.Context {
	return genericapirequest.WithNamespace(t.Context(), namespace)
}

// newPod returns a Pod as it is decoded from a request.
func newPod(t *testing.T, name string, modify ...func(*v1.Pod)) *tenancy.Pod {
	t.Helper()
	sent := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "nginx:1",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}},
	}
	for _, m := range modify {
		m(sent)
	}
	scheme.Default(sent)
	p := &tenancy.Pod{}
	if err := scheme.Convert(sent, p, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func onNode(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }

func create(t *testing.T, s Storage, p *tenancy.Pod) *tenancy.Pod {
	t.Helper()
	created, err := s.Pod.Create(newContext(t), p, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.(*tenancy.Pod)
}

func get(t *testing.T, s Storage, name string) *tenancy.Pod {
	t.Helper()
	obj, err := s.Pod.Get(newContext(t), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*tenancy.Pod)
}

// TestContract runs the tests that the library has for every registry.
func TestContract(t *testing.T) {
	contract := func(t *testing.T) *genericregistrytest.Tester {
		return genericregistrytest.New(t, newStorage(t).Pod.Store).ReturnDeletedObject()
	}
	t.Run("create", func(t *testing.T) {
		valid := newPod(t, "")
		valid.ObjectMeta = metav1.ObjectMeta{}
		contract(t).TestCreate(valid,
			newPod(t, "foo", func(p *v1.Pod) { p.Spec.Containers = nil }),
			newPod(t, "foo", func(p *v1.Pod) { p.Labels = map[string]string{"not/a/label": "x"} }))
	})
	t.Run("update", func(t *testing.T) {
		contract(t).TestUpdate(newPod(t, "foo"),
			func(obj runtime.Object) runtime.Object {
				obj.(*tenancy.Pod).Labels = map[string]string{"a": "b"}
				return obj
			},
			func(obj runtime.Object) runtime.Object {
				obj.(*tenancy.Pod).Spec.RestartPolicy = corev1.RestartPolicyNever
				return obj
			})
	})
	t.Run("delete", func(t *testing.T) { contract(t).TestDelete(newPod(t, "foo")) })
	t.Run("delete gracefully", func(t *testing.T) { contract(t).TestDeleteGraceful(newPod(t, "foo", onNode("n")), 30) })
	t.Run("get", func(t *testing.T) { contract(t).TestGet(newPod(t, "foo")) })
	t.Run("list", func(t *testing.T) { contract(t).TestList(newPod(t, "foo")) })
	t.Run("watch", func(t *testing.T) {
		p := newPod(t, "foo", onNode("n"))
		p.Labels = map[string]string{"app": "x"}
		contract(t).TestWatch(p,
			[]labels.Set{{"app": "x"}}, []labels.Set{{"app": "y"}},
			[]fields.Set{{"metadata.name": "foo"}, {"spec.nodeName": "n"}},
			[]fields.Set{{"metadata.name": "bar"}, {"spec.nodeName": "m"}, {"metadata.name": "foo", "spec.nodeName": "m"}})
	})
}

func TestCreate(t *testing.T) {
	s := newStorage(t)
	p := newPod(t, "foo")
	p.Generation = 9
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSGuaranteed}
	create(t, s, p)
	got := get(t, s, "foo")
	if diff := cmp.Diff(corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable}, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got.Generation != 1 || got.UID == "" || got.CreationTimestamp.IsZero() {
		t.Errorf("metadata: %+v", got.ObjectMeta)
	}
	if request := got.Spec.Containers[0].Resources.Requests["cpu"]; request.String() != "1" {
		t.Errorf("request is %s, want the limit", request.String())
	}
}

// update sends the stored Pod back, changed, to one of the storages.
func update(t *testing.T, to rest.Updater, s Storage, name string, change func(*tenancy.Pod)) (*tenancy.Pod, error) {
	t.Helper()
	p := get(t, s, name)
	change(p)
	obj, created, err := to.Update(newContext(t), name, rest.DefaultUpdatedObjectInfo(p),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	if created {
		t.Errorf("an update created pod %s", name)
	}
	return obj.(*tenancy.Pod), nil
}

func TestSubresources(t *testing.T) {
	s := newStorage(t)
	create(t, s, newPod(t, "foo", onNode("n")))

	p, err := update(t, s.Status, s, "foo", func(p *tenancy.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Spec.Containers[0].Image = "other:1"
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Status.Phase != corev1.PodRunning || p.Spec.Containers[0].Image != "nginx:1" || p.Generation != 1 {
		t.Errorf("after status: phase %s, image %s, generation %d", p.Status.Phase, p.Spec.Containers[0].Image, p.Generation)
	}

	p, err = update(t, s.Resize, s, "foo", func(p *tenancy.Pod) {
		p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
		p.Status.Phase = corev1.PodFailed
	})
	if err != nil {
		t.Fatal(err)
	}
	if cpu := p.Spec.Containers[0].Resources.Limits["cpu"]; cpu.String() != "2" || p.Status.Phase != corev1.PodRunning || p.Generation != 2 {
		t.Errorf("after resize: cpu %s, phase %s, generation %d", cpu.String(), p.Status.Phase, p.Generation)
	}

	p, err = update(t, s.EphemeralContainers, s, "foo", func(p *tenancy.Pod) {
		debug := corev1.Container{Name: "debug", Image: "busybox:1"}
		defaults.SetDefaults_Container(&debug)
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(debug)}}
		p.Spec.Containers[0].Image = "other:1"
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Spec.EphemeralContainers) != 1 || p.Spec.Containers[0].Image != "nginx:1" || p.Generation != 3 {
		t.Errorf("after ephemeralcontainers: %+v, generation %d", p.Spec, p.Generation)
	}

	p, err = update(t, s.Pod, s, "foo", func(p *tenancy.Pod) {
		p.Spec.Containers[0].Image = "other:1"
		p.Status.Phase = corev1.PodFailed
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.Containers[0].Image != "other:1" || p.Status.Phase != corev1.PodRunning || p.Generation != 4 {
		t.Errorf("after update: image %s, phase %s, generation %d", p.Spec.Containers[0].Image, p.Status.Phase, p.Generation)
	}
	if _, err := update(t, s.EphemeralContainers, s, "foo", func(p *tenancy.Pod) { p.Spec.EphemeralContainers = nil }); err == nil {
		t.Error("an ephemeral container could be removed")
	}
}

// TestSubresourcesDoNotCreate passes forceAllowCreate, as server-side apply does.
func TestSubresourcesDoNotCreate(t *testing.T) {
	s := newStorage(t)
	for name, storage := range map[string]rest.Updater{"status": s.Status, "resize": s.Resize, "ephemeralcontainers": s.EphemeralContainers} {
		_, _, err := storage.Update(newContext(t), "foo", rest.DefaultUpdatedObjectInfo(newPod(t, "foo")),
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
		if err == nil {
			t.Errorf("%s created a pod", name)
		}
	}
}
