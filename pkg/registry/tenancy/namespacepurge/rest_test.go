// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	limitrange "github.com/borough-io/borough/pkg/registry/tenancy/limitrange/storage"
	namespace "github.com/borough-io/borough/pkg/registry/tenancy/namespace/storage"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacepurge"
	pod "github.com/borough-io/borough/pkg/registry/tenancy/pod/storage"
)

func TestMain(m *testing.M) { registrytest.Main(m) }

const name = "team-a"

// world is a Namespace that is being deleted, the registry that purges it, and
// what comes of a request.
type world struct {
	purges      *namespacepurge.REST
	pods        *pod.REST
	limitRanges *limitrange.REST
	uid         types.UID
	ctx         context.Context

	mu       sync.Mutex
	warnings []string
	asked    []string // of admission
	refuse   string   // the Pod that admission refuses to delete
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := registrytest.NewScheme()
	namespaces, err := namespace.NewStorage(scheme, registrytest.RESTOptions(t, scheme, tenancy.Resource("namespaces")), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(namespaces.Namespace.Destroy)
	pods, err := pod.NewStorage(scheme, registrytest.RESTOptions(t, scheme, tenancy.Resource("pods")), namespaces.Namespace, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Pod.Destroy)
	limitRanges, err := limitrange.NewStorage(scheme, registrytest.RESTOptions(t, scheme, tenancy.Resource("limitranges")), namespaces.Namespace, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limitRanges.LimitRange.Destroy)

	clusterScoped := request.WithNamespace(t.Context(), "")
	created, err := namespaces.Namespace.Create(clusterScoped, &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := namespaces.Namespace.Delete(clusterScoped, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	w := &world{pods: pods.Pod, limitRanges: limitRanges.LimitRange, uid: created.(*tenancy.Namespace).UID}
	w.ctx = request.WithUser(request.WithNamespace(t.Context(), name), &user.DefaultInfo{Name: "alice"})
	w.ctx = warning.WithWarningRecorder(w.ctx, w)
	w.purges = namespacepurge.NewREST(scheme, w, []namespacepurge.Content{
		{Clearer: pods.Pod, Resource: v1.SchemeGroupVersion.WithResource("pods"), Kind: v1.SchemeGroupVersion.WithKind("Pod")},
		{Clearer: limitRanges.LimitRange, Resource: v1.SchemeGroupVersion.WithResource("limitranges"), Kind: v1.SchemeGroupVersion.WithKind("LimitRange")},
	})
	return w
}

// AddWarning implements warning.Recorder.
func (w *world) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

// Handles implements admission.Interface.
func (w *world) Handles(operation admission.Operation) bool { return operation == admission.Delete }

// Validate implements admission.ValidationInterface.
func (w *world) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj := a.GetOldObject().(metav1.Object)
	options := a.GetOperationOptions().(*metav1.DeleteOptions)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, fmt.Sprintf("%s %s %s/%s as %s by %s, grace %d, dry run %t %v", a.GetOperation(), a.GetResource().Resource,
		a.GetNamespace(), a.GetName(), a.GetKind().Kind, a.GetUserInfo().GetName(), *options.GracePeriodSeconds, a.IsDryRun(), options.DryRun))
	if obj.GetName() == w.refuse {
		return admission.NewForbidden(a, errors.New("it is kept"))
	}
	return nil
}

// fill creates a Pod that is held, one that is not, and a LimitRange.
func (w *world) fill(t *testing.T) {
	t.Helper()
	w.createPod(t, "held", "example.com/a", "example.com/b", "example.com/c", "example.com/d", "example.com/e", "example.com/f")
	w.createPod(t, "free")
	lr := &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits", Namespace: name}}
	if _, err := w.limitRanges.Create(w.ctx, lr, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) createPod(t *testing.T, podName string, finalizers ...string) {
	t.Helper()
	p := &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: name, Finalizers: finalizers},
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
	if _, err := w.pods.Create(w.ctx, p, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// left are the names of what is there.
func (w *world) left(t *testing.T) []string {
	t.Helper()
	pods, err := w.pods.List(w.ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limitRanges, err := w.limitRanges.List(w.ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, p := range pods.(*tenancy.PodList).Items {
		names = append(names, p.Name)
	}
	for _, lr := range limitRanges.(*tenancy.LimitRangeList).Items {
		names = append(names, lr.Name)
	}
	return names
}

func (w *world) create(purge *tenancy.NamespacePurge, options metav1.CreateOptions) (*tenancy.NamespacePurge, error) {
	obj, err := w.purges.Create(w.ctx, purge, rest.ValidateAllObjectFunc, &options)
	if err != nil {
		return nil, err
	}
	return obj.(*tenancy.NamespacePurge), nil
}

func newPurge(uid types.UID) *tenancy.NamespacePurge {
	return &tenancy.NamespacePurge{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec:       tenancy.NamespacePurgeSpec{NamespaceUID: uid},
		Status:     tenancy.NamespacePurgeStatus{Purged: []tenancy.PurgedResource{{Resource: "sent"}}},
	}
}

// TestCreate shows the answer, and what admission is asked.
func TestCreate(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	all := []string{"free", "held", "limits"}
	want := &tenancy.NamespacePurge{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: name},
		Spec:       tenancy.NamespacePurgeSpec{NamespaceUID: w.uid},
		Status: tenancy.NamespacePurgeStatus{Purged: []tenancy.PurgedResource{
			{Group: tenancy.GroupName, Resource: "pods", Count: 2, Held: 1, Objects: []tenancy.RemainingObject{{
				Name: "held", Finalizers: []string{"example.com/a", "example.com/b", "example.com/c", "example.com/d", "example.com/e"},
			}}},
			{Group: tenancy.GroupName, Resource: "limitranges", Count: 1},
		}},
	}
	for _, step := range []struct {
		options metav1.CreateOptions
		asked   string
		warning string
		left    []string
	}{
		{metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, "dry run true [All]", "would remove 3 objects, 1 of them held", all},
		{metav1.CreateOptions{}, "dry run false []", "removed 3 objects, 1 of them held", []string{}},
	} {
		w.asked, w.warnings = nil, nil
		got, err := w.create(newPurge(w.uid), step.options)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the answer (-want +got):\n%s", diff)
		}
		slices.Sort(w.asked)
		if diff := cmp.Diff([]string{
			"DELETE limitranges team-a/limits as LimitRange by alice, grace 0, " + step.asked,
			"DELETE pods team-a/free as Pod by alice, grace 0, " + step.asked,
			"DELETE pods team-a/held as Pod by alice, grace 0, " + step.asked,
		}, w.asked); diff != "" {
			t.Errorf("admission was asked (-want +got):\n%s", diff)
		}
		if len(w.warnings) != 1 || !strings.HasPrefix(w.warnings[0], step.warning) {
			t.Errorf("warned of %q, want %q", w.warnings, step.warning)
		}
		if diff := cmp.Diff(step.left, w.left(t)); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
	}
	// Once more, there is nothing to do and nothing to warn of.
	w.warnings = nil
	got, err := w.create(newPurge(w.uid), metav1.CreateOptions{})
	if err != nil || got.Status.Purged != nil || w.warnings != nil {
		t.Errorf("got %+v, error %v, warned of %q", got, err, w.warnings)
	}
}

// TestCreateIsRefused shows that nothing is touched then.
func TestCreateIsRefused(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	for what, test := range map[string]struct {
		purge *tenancy.NamespacePurge
		is    func(error) bool
		text  string
	}{
		"no UID":      {newPurge(""), apierrors.IsInvalid, "spec.namespaceUID: Required value: must be the metadata.uid of the namespace to purge"},
		"another UID": {newPurge("other"), apierrors.IsConflict, "this one has UID " + string(w.uid)},
		"a bad name": {&tenancy.NamespacePurge{ObjectMeta: metav1.ObjectMeta{Name: "a/b", Namespace: name}, Spec: tenancy.NamespacePurgeSpec{NamespaceUID: w.uid}},
			apierrors.IsInvalid, "metadata.name: Invalid value"},
	} {
		if _, err := w.create(test.purge, metav1.CreateOptions{}); !test.is(err) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	forbidden := apierrors.NewForbidden(tenancy.Resource("namespacepurges"), name, nil)
	refuse := func(context.Context, runtime.Object) error { return forbidden }
	if _, err := w.purges.Create(w.ctx, newPurge(w.uid), refuse, &metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("admission of the purge: got %v", err)
	}
	if left := w.left(t); len(left) != 3 || len(w.asked) > 0 {
		t.Errorf("left %v, asked %q", left, w.asked)
	}

	// A rule that keeps one Pod keeps it, and what comes after the Pods.
	w.refuse = "held"
	if _, err := w.create(newPurge(w.uid), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `pods.tenancy.borough.io "held" is forbidden: it is kept`) {
		t.Errorf("admission of a delete: got %v", err)
	}
	if diff := cmp.Diff([]string{"held", "limits"}, w.left(t)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestAnswerIsBounded purges more than the answer names.
func TestAnswerIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 103 {
		w.createPod(t, fmt.Sprintf("p%03d", i), "example.com/a")
	}
	got, err := w.create(newPurge(w.uid), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := got.Status.Purged[0]
	if pods.Count != 103 || pods.Held != 103 || len(pods.Objects) != 100 || pods.Objects[0].Name != "p000" || pods.Objects[99].Name != "p099" {
		t.Errorf("count %d, held %d, %d objects", pods.Count, pods.Held, len(pods.Objects))
	}
}
