// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// coreClient returns an unmodified client, which uses JSON or protobuf.
func coreClient(t *testing.T, b *harness.Borough, contentType string) kubernetes.Interface {
	t.Helper()
	config := b.Config(t, "admin")
	config.ContentType = contentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestCoreObjects writes each kind through one group, and reads and watches it through
// the other.
func TestCoreObjects(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			core, own := coreClient(t, borough, contentType).CoreV1(), borough.Client(t).TenancyV1()
			ns, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-core-"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ours, err := own.Namespaces().Get(t.Context(), ns.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantSameObject(t, &ns.ObjectMeta, &ours.ObjectMeta)
			wantEqual(t, "finalizers", ns.Spec.Finalizers, []corev1.FinalizerName{corev1.FinalizerKubernetes})
			wantEqual(t, "kind", ns.GroupVersionKind().Kind, "") // a client sets none, as for core/v1

			watches := map[string]watch.Interface{}
			if watches["core"], err = core.Pods(ns.Name).Watch(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if watches["own"], err = own.Pods(ns.Name).Watch(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			pod, err := core.Pods(ns.Name).Create(t.Context(), (*corev1.Pod)(newPod("web")), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ownPod, err := own.Pods(ns.Name).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantSameObject(t, &pod.ObjectMeta, &ownPod.ObjectMeta)
			if diff := cmp.Diff(pod.Spec, ownPod.Spec); diff != "" {
				t.Errorf("the specs differ: %s", diff)
			}
			for group, w := range watches {
				event := <-w.ResultChan()
				w.Stop()
				if object, ok := event.Object.(metav1.Object); !ok || object.GetUID() != pod.UID || object.GetResourceVersion() != pod.ResourceVersion {
					t.Errorf("%s: got %+v", group, event)
				}
			}

			// Subresources.
			pod.Status.Phase = corev1.PodRunning
			if _, err = core.Pods(ns.Name).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			err = core.Pods(ns.Name).Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			resized := []byte(`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1m"}}}]}}`)
			if _, err := core.Pods(ns.Name).Patch(t.Context(), "web", types.StrategicMergePatchType, resized, metav1.PatchOptions{}, "resize"); !apierrors.IsInvalid(err) {
				t.Errorf("resize: %v, want the QoS class to be immutable", err)
			}
			if ownPod, err = own.Pods(ns.Name).Get(t.Context(), "web", metav1.GetOptions{}); err != nil || ownPod.Spec.NodeName != "n1" || ownPod.Status.Phase != corev1.PodRunning {
				t.Errorf("got %+v, error %v", ownPod, err)
			}
			selected, err := core.Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=n1,metadata.namespace=" + ns.Name})
			if err != nil || len(selected.Items) != 1 {
				t.Errorf("by node: %+v, error %v", selected, err)
			}

			// The end: the Pod does not wait for a kubelet.
			if err := core.Pods(ns.Name).Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)); err != nil {
				t.Fatal(err)
			}
			if err := core.Namespaces().Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			poll.Eventually(t, harness.Gone(t, own.Namespaces(), ns.Name))
			_, err = core.Pods(ns.Name).Get(t.Context(), "web", metav1.GetOptions{})
			wantEqual(t, "message", fmt.Sprint(err), `pods "web" not found`)
		})
	}
}

func wantSameObject(t *testing.T, core, own *metav1.ObjectMeta) {
	t.Helper()
	core, own = core.DeepCopy(), own.DeepCopy()
	for i := range core.ManagedFields {
		wantEqual(t, "version of managed fields", core.ManagedFields[i].APIVersion, "v1")
		core.ManagedFields[i].APIVersion = v1.SchemeGroupVersion.String()
	}
	if diff := cmp.Diff(core, own); diff != "" {
		t.Errorf("the metadata differs (-core +own):\n%s", diff)
	}
}

// TestCoreKeepsOwnFields changes a protected Namespace through the core group in every
// way. It stays protected, and who manages the protection stays the same.
func TestCoreKeepsOwnFields(t *testing.T) {
	t.Parallel()
	own, core := borough.Client(t).TenancyV1().Namespaces(), coreClient(t, borough, "").CoreV1().Namespaces()
	ns := newNamespace(t, borough)
	protect := []byte(fmt.Sprintf(`{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":%q,"labels":{"a":"own"}},"spec":{"deletionProtection":true}}`, ns))
	if _, err := own.Patch(t.Context(), ns, types.ApplyPatchType, protect, metav1.PatchOptions{FieldManager: "guard"}); err != nil {
		t.Fatal(err)
	}
	manager := func(got *v1.Namespace) (managers []string) {
		for _, entry := range got.ManagedFields {
			var fields struct {
				Spec map[string]any `json:"f:spec"`
			}
			if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
				t.Fatal(err)
			}
			if _, ok := fields.Spec["f:deletionProtection"]; ok {
				managers = append(managers, entry.Manager)
			}
		}
		return managers
	}
	apply := func(labels map[string]string, manager string) error {
		_, err := core.Apply(t.Context(), coreapply.Namespace(ns).WithLabels(labels), metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	patch := func(pt types.PatchType, body string, subresources ...string) error {
		_, err := core.Patch(t.Context(), ns, pt, []byte(body), metav1.PatchOptions{}, subresources...)
		return err
	}
	modify := func(change func(*corev1.Namespace), write func(*corev1.Namespace) error) func() error {
		return func() error {
			got, err := core.Get(t.Context(), ns, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(got)
			return write(got)
		}
	}
	label := func(n *corev1.Namespace) { n.Labels["updated"] = "yes" }
	for _, step := range []struct {
		name  string
		write func() error
	}{
		{"update", modify(label, func(n *corev1.Namespace) error {
			_, err := core.Update(t.Context(), n, metav1.UpdateOptions{})
			return err
		})},
		{"update of the status", modify(label, func(n *corev1.Namespace) error {
			_, err := core.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
			return err
		})},
		{"finalize", modify(label, func(n *corev1.Namespace) error {
			_, err := core.Finalize(t.Context(), n, metav1.UpdateOptions{})
			return err
		})},
		{"merge patch", func() error { return patch(types.MergePatchType, `{"metadata":{"labels":{"merge":"a"}}}`) }},
		{"merge patch of the whole", func() error { return patch(types.MergePatchType, `{"spec":null,"status":null}`) }},
		{"JSON patch", func() error {
			return patch(types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/json","value":"a"}]`)
		}},
		{"strategic merge patch", func() error {
			return patch(types.StrategicMergePatchType, `{"metadata":{"annotations":{"strategic":"a"}}}`)
		}},
		{"apply by another", func() error { return apply(map[string]string{"core": "a"}, "other") }},
		{"apply by the same", func() error { return apply(map[string]string{"a": "own"}, "guard") }},
		{"apply of nothing by the same", func() error { return apply(nil, "guard") }},
	} {
		if err := step.write(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		got, err := own.Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !got.Spec.DeletionProtection || !cmp.Equal(manager(got), []string{"guard"}) {
			t.Errorf("after %s: protected %v by %v", step.name, got.Spec.DeletionProtection, manager(got))
		}
		// Once more changes nothing.
		if err := step.write(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		again, err := own.Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, step.name+", again: resourceVersion", again.ResourceVersion, got.ResourceVersion)
		managers := map[string]bool{}
		for _, entry := range again.ManagedFields {
			managers[fmt.Sprint(entry.Manager, entry.Operation, entry.Subresource)] = true
		}
		wantEqual(t, step.name+": managers", len(managers), len(again.ManagedFields))
	}
	if err := core.Delete(t.Context(), ns, metav1.DeleteOptions{}); !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, v1.NamespaceProtectedCause) {
		t.Errorf("delete: %v", err)
	}
	// A manager that applies without it removes it, through our group.
	if _, err := own.Patch(t.Context(), ns, types.ApplyPatchType, []byte(fmt.Sprintf(`{"apiVersion":"tenancy.borough.io/v1","kind":"Namespace","metadata":{"name":%q}}`, ns)), metav1.PatchOptions{FieldManager: "guard"}); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, borough, ns)
}

// TestCoreApply applies through both groups: a field that was applied through one is
// managed through the other, too.
func TestCoreApply(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	core := coreClient(t, borough, "").CoreV1().Pods(ns)
	own := borough.Client(t).TenancyV1().Pods(ns)
	applyOwn := func(manager, image, label string) error {
		_, err := own.Patch(t.Context(), "p", types.ApplyPatchType, []byte(fmt.Sprintf(
			`{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"p","labels":{%q:"a"}},"spec":{"containers":[{"name":"c","image":%q}]}}`, label, image)),
			metav1.PatchOptions{FieldManager: manager})
		return err
	}
	applyCore := func(manager, image, label string) error {
		_, err := core.Apply(t.Context(), coreapply.Pod("p", ns).WithLabels(map[string]string{label: "a"}).
			WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("c").WithImage(image))), metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	for _, step := range []struct {
		name     string
		apply    func(manager, image, label string) error
		manager  string
		image    string
		label    string
		conflict bool
	}{
		{"ours creates", applyOwn, "a", "i:1", "first", false},
		{"core agrees", applyCore, "b", "i:1", "second", false},
		{"core conflicts", applyCore, "b", "i:2", "second", true},
		{"core drops the image of another", applyCore, "a", "i:1", "third", false},
		{"ours conflicts", applyOwn, "c", "i:2", "fourth", true},
		{"ours drops its label", applyOwn, "b", "i:1", "fifth", false},
	} {
		if err := step.apply(step.manager, step.image, step.label); apierrors.IsConflict(err) != step.conflict || !step.conflict && err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	got, err := core.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "labels", got.Labels, map[string]string{"third": "a", "fifth": "a"})
	wantEqual(t, "managers", len(got.ManagedFields), 2)
	extracted, err := coreapply.ExtractPod(got, "a")
	if err != nil || !cmp.Equal(extracted.Labels, map[string]string{"third": "a"}) {
		t.Errorf("extracted %+v, error %v", extracted, err)
	}
}

// TestCoreRights grants rights on one group, which hold in both.
func TestCoreRights(t *testing.T) {
	t.Parallel()
	for _, granted := range []string{"", "tenancy.borough.io"} {
		ns := newNamespace(t, borough)
		user := ns + "-user"
		borough.Kubectl(t, "create", "role", "r", "-n", ns, "--verb=list,create", "--resource=pods."+granted)
		borough.Kubectl(t, "create", "rolebinding", "r", "-n", ns, "--role=r", "--user="+user)
		client := as(t, borough, user)
		for _, path := range []string{"/api/v1", "/apis/tenancy.borough.io/v1"} {
			path += "/namespaces/" + ns
			for resource, want := range map[string]int{"/pods": http.StatusOK, "/limitranges": http.StatusForbidden, "/pods/x": http.StatusForbidden} {
				if answer := client.Do(t, http.MethodGet, path+resource, nil); answer.Code != want {
					t.Errorf("granted in %q: GET %s: %v, want %d", granted, path+resource, answer, want)
				}
			}
			if answer := client.Do(t, http.MethodDelete, path+"/pods", nil); answer.Code != http.StatusForbidden {
				t.Errorf("granted in %q: DELETE %s: %v", granted, path, answer)
			}
		}
	}
}

// TestCoreRightsOfAllVerbs sends each verb of each resource that both groups have, as users
// with all rights of one group, or those to read Pods. Both groups allow the same.
func TestCoreRightsOfAllVerbs(t *testing.T) {
	t.Parallel()
	const own = "tenancy.borough.io"
	ns := newNamespace(t, borough)
	requests := discovered(t, borough, ns)
	for user, rule := range map[string]rbacv1.PolicyRule{
		"core":   {APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}},
		"own":    {APIGroups: []string{own}, Resources: []string{"*"}, Verbs: []string{"*"}},
		"reader": {APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"get", "list", "watch"}},
		"status": {APIGroups: []string{own}, Resources: []string{"*/status"}, Verbs: []string{"patch"}},
	} {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{rule}}
		if _, err := rights(t, borough).Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := rights(t, borough).RoleBindings(ns).Create(t.Context(), newRoleBinding(user, "Role", user, ns+"-"+user), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		client := as(t, borough, ns+"-"+user)
		allowed := map[string]bool{}
		for right, r := range requests {
			group, resource, _ := strings.Cut(right, "/")
			name, _, _ := strings.Cut(resource, " ")
			if group != "" && group != own || !coregroup.Shared(name) {
				continue
			}
			answer := client.Open(t, r.method, r.path, []byte(r.body), "Content-Type", r.contentType)
			_ = answer.Body.Close() // a watch would not end
			allowed[right] = answer.StatusCode != http.StatusForbidden
		}
		granted := 0
		for right, ok := range allowed {
			resource, inOwn := strings.CutPrefix(right, own+"/")
			if !inOwn {
				continue
			}
			if other, served := allowed["/"+resource]; !served || other != ok {
				t.Errorf("%s: %s is allowed in our group: %t, in the core group: %t (served: %t)", user, resource, ok, other, served)
			}
			if ok {
				granted++
			}
		}
		// All users may list and watch Namespaces.
		if granted <= 2 || len(allowed) < 60 {
			t.Errorf("%s: %d of %d requests were allowed", user, granted, len(allowed))
		}
	}
}

// TestCoreAdmission creates what admission rejects through both groups.
func TestCoreAdmission(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1", "defaultRequest cpu=100m", "default cpu=1")))
	borough.Kubectl(t, "create", "quota", "q", "-n", ns, "--hard=pods=1")
	core, own := coreClient(t, borough, "").CoreV1(), borough.Client(t).TenancyV1()
	create := func(ns string, pod *v1.Pod) (ofCore, ofOwn error) {
		_, ofCore = core.Pods(ns).Create(t.Context(), (*corev1.Pod)(pod), metav1.CreateOptions{})
		_, ofOwn = own.Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
		return ofCore, ofOwn
	}
	for name, test := range map[string]struct {
		namespace string
		pod       *v1.Pod
		core, own string
	}{
		"too big": {
			ns, newPod("big", withResources(nil, quantities("cpu=2"))),
			`pods "big" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
			`pods.tenancy.borough.io "big" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
		},
		"no namespace": {
			"absent-" + ns, newPod("lost"),
			`namespaces "absent-` + ns + `" not found`,
			`namespaces.tenancy.borough.io "absent-` + ns + `" not found`,
		},
		"invalid": {
			ns, newPod("invalid", func(p *v1.Pod) { p.Spec.Containers[0].Image = "" }),
			`Pod "invalid" is invalid: spec.containers[0].image: Required value`,
			`Pod.tenancy.borough.io "invalid" is invalid: spec.containers[0].image: Required value`,
		},
	} {
		ofCore, ofOwn := create(test.namespace, test.pod)
		wantEqual(t, name, fmt.Sprint(ofCore), test.core)
		wantEqual(t, name, fmt.Sprint(ofOwn), test.own)
	}
	created, err := core.Pods(ns).Create(t.Context(), (*corev1.Pod)(newPod("one")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "default request", created.Spec.Containers[0].Resources.Requests.Cpu().String(), "100m")
	ofCore, ofOwn := create(ns, newPod("two"))
	wantEqual(t, "second Pod", fmt.Sprint(ofCore), `pods "two" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`)
	wantContains(t, fmt.Sprint(ofOwn), `pods.tenancy.borough.io "two" is forbidden: exceeded quota: q`)
}

// TestCoreInformers runs the informers of client-go.
func TestCoreInformers(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("before"))
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(coreClient(t, borough, ""), 0, informers.WithNamespace(ns))
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	synced := []cache.InformerSynced{pods.Informer().HasSynced, namespaces.Informer().HasSynced}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	deadline, cancelWait := context.WithTimeout(ctx, time.Minute)
	defer cancelWait()
	if !cache.WaitForCacheSync(deadline.Done(), synced...) {
		t.Fatal("the caches have not synced")
	}
	if _, err := pods.Lister().Pods(ns).Get("before"); err != nil {
		t.Error(err)
	}
	if _, err := namespaces.Lister().Get(ns); err != nil {
		t.Error(err)
	}
	createPod(t, borough, ns, newPod("after"))
	poll.Eventually(t, func() string {
		if _, err := pods.Lister().Pods(ns).Get("after"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestCoreKubectl types what people type.
func TestCoreKubectl(t *testing.T) {
	t.Parallel()
	kubectl := func(args ...string) string { t.Helper(); return borough.Kubectl(t, args...) }
	ns := newNamespace(t, borough) + "-core"
	wantEqual(t, "create namespace", kubectl("create", "namespace", ns), "namespace/"+ns+" created\n")
	wantEqual(t, "run", kubectl("run", "web", "--image=nginx", "-n", ns), "pod/web created\n")
	wantEqual(t, "create quota", kubectl("create", "quota", "q", "-n", ns, "--hard=pods=3"), "resourcequota/q created\n")
	wantContains(t, kubectl("get", "ns", ns), "NAME", "STATUS", "AGE", "Active")
	wantEqual(t, "get all", rows(kubectl("get", "all", "-n", ns, "--no-headers"))[0][:len("web 0/1 Pending")], "web 0/1 Pending")
	wantContains(t, kubectl("get", "ns,pods,quota,limits", "-n", ns), "namespace/"+ns, "pod/web", "resourcequota/q")
	wantContains(t, kubectl("describe", "ns", ns), "Resource Quotas", "pods      1     3", "No LimitRange resource.")
	wantContains(t, kubectl("describe", "pod", "web", "-n", ns), "Image:", "nginx", "QoS Class:", "BestEffort", "Events:")
	wantContains(t, kubectl("describe", "quota", "-n", ns), "pods", "Resource", "Used", "Hard")
	wantContains(t, kubectl("label", "pod", "web", "-n", ns, "a=b"), "pod/web labeled")
	wantContains(t, kubectl("annotate", "ns", ns, "a=b"), "annotated")
	wantContains(t, kubectl("wait", "ns", ns, "--for=jsonpath={.status.phase}=Active", "--timeout=30s"), "condition met")
	wantContains(t, kubectl("explain", "limits.spec.limits"), "LimitRangeItem")
	wantContains(t, kubectl("get", "pod", "web", "-n", ns, "-o", "yaml"), "apiVersion: v1\n")
	wantContains(t, kubectl("set", "image", "pod/web", "web=nginx:2", "-n", ns), "image updated")
	stdout, stderr, err := borough.TryKubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l","namespace":%q},"spec":{"limits":[{"type":"Pod","max":{"cpu":"1"}}]}}]}`, ns), "apply", "-f", "-")
	if err != nil || stdout != "limitrange/l created\n" {
		t.Errorf("apply of a List: %s%s, error %v", stdout, stderr, err)
	}
	wantContains(t, kubectl("describe", "limits", "l", "-n", ns), "Pod", "cpu", "1")
	wantEqual(t, "delete", kubectl("delete", "ns", ns), `namespace "`+ns+`" deleted`+"\n")
	wantContains(t, borough.KubectlFails(t, "get", "ns", ns), `Error from server (NotFound): namespaces "`+ns+`" not found`)
}
