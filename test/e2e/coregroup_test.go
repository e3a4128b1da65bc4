// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

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

// TestContentWithoutNamespace creates an object of each namespaced kind of Kubernetes in a
// Namespace that does not exist. The error names the Namespace as kube-apiserver does.
func TestContentWithoutNamespace(t *testing.T) {
	t.Parallel()
	http := borough.HTTP(t)
	for path, body := range map[string]string{
		"/api/v1/namespaces/nowhere/pods":                                         `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		"/api/v1/namespaces/nowhere/limitranges":                                  `{"metadata":{"name":"x"}}`,
		"/api/v1/namespaces/nowhere/resourcequotas":                               `{"metadata":{"name":"x"}}`,
		"/api/v1/namespaces/nowhere/events":                                       `{"metadata":{"name":"x"},"involvedObject":{"namespace":"nowhere"}}`,
		"/apis/events.k8s.io/v1/namespaces/nowhere/events":                        `{"metadata":{"name":"x"},"regarding":{"namespace":"nowhere"},"eventTime":"2020-01-02T03:04:05.000000Z","type":"Normal","reason":"r","action":"a","reportingController":"c","reportingInstance":"i"}`,
		"/apis/coordination.k8s.io/v1/namespaces/nowhere/leases":                  `{"metadata":{"name":"x"}}`,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/nowhere/roles":             `{"metadata":{"name":"x"},"rules":[]}`,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/nowhere/rolebindings":      `{"metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":"view"}}`,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/nowhere/roles?dryRun=All":  `{"metadata":{"name":"x"},"rules":[]}`,
		"/apis/coordination.k8s.io/v1/namespaces/nowhere/leases?fieldManager=any": `{"metadata":{"name":"x"}}`,
	} {
		answer := http.Do(t, "POST", path, []byte(body), "Content-Type", asJSON)
		wantStatus(t, answer, 404, `namespaces "nowhere" not found`)
		wantEqual(t, path, answer.Status().Details, &metav1.StatusDetails{Name: "nowhere", Kind: "namespaces"})
	}
}

// TestOneWatchCache checks that both groups share the watch caches.
func TestOneWatchCache(t *testing.T) {
	t.Parallel()
	if _, err := coreClient(t, borough, "").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		t.Fatal(err)
	}
	metrics := string(borough.HTTP(t).Do(t, "GET", "/metrics", nil).Body)
	for _, resource := range []string{"namespaces", "limitranges", "resourcequotas", "pods"} {
		var groups []string
		for _, match := range regexp.MustCompile(`apiserver_watch_cache_initializations_total\{group="(.*)",resource="`+resource+`"\} `).FindAllStringSubmatch(metrics, -1) {
			groups = append(groups, match[1])
		}
		wantEqual(t, "groups with a watch cache of "+resource, groups, []string{"tenancy.borough.io"})
	}
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
	if _, stderr, err := borough.TryKubectl(t, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web"},"target":{"name":"n"}}`, "create", "-n", ns, "-f", "-"); err != nil {
		t.Errorf("create of a Binding: %v\n%s", err, stderr)
	}
	wantEqual(t, "the node", kubectl("get", "pod", "web", "-n", ns, "-o", "jsonpath={.spec.nodeName}"), "n")
	kubectl("delete", "pod", "web", "-n", ns, "--grace-period=0", "--force") // no agent ends it
	stdout, stderr, err := borough.TryKubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l","namespace":%q},"spec":{"limits":[{"type":"Pod","max":{"cpu":"1"}}]}}]}`, ns), "apply", "-f", "-")
	if err != nil || stdout != "limitrange/l created\n" {
		t.Errorf("apply of a List: %s%s, error %v", stdout, stderr, err)
	}
	wantContains(t, kubectl("describe", "limits", "l", "-n", ns), "Pod", "cpu", "1")
	wantEqual(t, "delete", kubectl("delete", "ns", ns), `namespace "`+ns+`" deleted`+"\n")
	wantContains(t, borough.KubectlFails(t, "get", "ns", ns), `Error from server (NotFound): namespaces "`+ns+`" not found`)
}
