// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

const controllerUser = "system:serviceaccount:" + testcluster.SystemNamespace + ":borough-controller-manager"

// TestPurge deletes a Namespace with kubectl, which waits until it is removed.
// The controller works through the cluster with its service account.
func TestPurge(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := cluster.BoroughClient(t).TenancyV1()
	namespace := newNamespace(t)
	for i := range 5 {
		newPod(t, namespace, fmt.Sprintf("pod-%d", i))
	}
	if _, err := client.LimitRanges(namespace).Create(ctx, newLimitRange(corev1.LimitTypePod), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t).Run(t, "delete", namespaces, namespace)
	if reason := gone(t, namespace)(); reason != "" {
		t.Errorf("kubectl delete returned, but %s", reason)
	}
	left, err := client.Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("got %d remaining Pods, error %v", len(left.Items), err)
	}
	poll.Eventually(t, func() string {
		return findAudit(t, func(event auditEvent) bool {
			return event.Verb == "create" && event.User.Username == controllerUser &&
				event.ObjectRef.Resource == "namespacepurges" && event.ObjectRef.Namespace == namespace
		})
	})
}

// TestPurgeNamesWhatBlocks blocks the purge with a finalizer on a Pod and reads
// the condition.
func TestPurgeNamesWhatBlocks(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	newPod(t, namespace, "held", func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} })
	kubectl.Run(t, "delete", namespaces, namespace, "--wait=false")
	kubectl.Run(t, "wait", namespaces+"/"+namespace, "--for=condition=NamespaceFinalizersRemaining", waitTimeout)
	wantJSONPath(t, kubectl, namespaces+"/"+namespace, `{.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].message}`,
		"Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances")
	kubectl.Run(t, "patch", pods, "held", "-n", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	kubectl.Run(t, "wait", namespaces+"/"+namespace, "--for=delete", waitTimeout)
}

// TestClusterNamespace deletes the cluster's namespace of the same name. The
// cluster's namespace controller, which sends deletecollections for our kinds
// too, does not delete our objects.
func TestClusterNamespace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	core := cluster.Client(t).CoreV1()
	namespace := newNamespace(t)
	pod := newPod(t, namespace, "stays")
	newClusterNamespace(t, namespace)
	if _, err := core.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "goes"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watcher, err := core.Namespaces().Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: namespace}))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	cluster.Kubectl(t).Run(t, "delete", "namespace", namespace, waitTimeout)

	// Its termination was not blocked.
	for event := range watcher.ResultChan() {
		ns, ok := event.Object.(*corev1.Namespace)
		if !ok {
			t.Fatalf("the watch of the cluster's namespace: %+v", event)
		}
		for _, condition := range ns.Status.Conditions {
			if condition.Status == corev1.ConditionTrue && strings.HasSuffix(string(condition.Type), "Failure") {
				t.Errorf("the cluster's namespace has the condition %+v", condition)
			}
		}
		if event.Type == watch.Deleted {
			break
		}
	}

	client := cluster.BoroughClient(t).TenancyV1()
	got, err := client.Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || got.UID != pod.UID || got.DeletionTimestamp != nil {
		t.Errorf("after the removal of the cluster's namespace, our Pod: %+v, error %v", got, err)
	}
	ns, err := client.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil || ns.Status.Phase != v1.NamespaceActive {
		t.Errorf("after the removal of the cluster's namespace, our Namespace: %+v, error %v", ns, err)
	}
	// The namespace controller did send its deletecollections.
	poll.Eventually(t, func() string {
		return findAudit(t, func(event auditEvent) bool {
			return event.Verb == "deletecollection" && strings.HasSuffix(event.User.Username, ":namespace-controller") &&
				event.ObjectRef.Namespace == namespace
		})
	})
}

// TestOwnerReferences checks that the cluster's garbage collector handles
// dependents according to the propagation policy: background, foreground or
// orphan. It also collects the cluster's own objects.
func TestOwnerReferences(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	newClusterNamespace(t, namespace)
	policies := []string{"background", "foreground", "orphan"}
	for _, policy := range policies {
		owner := newPod(t, namespace, policy)
		newPod(t, namespace, policy+"-owned", func(pod *v1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.SchemeGroupVersion.WithKind("Pod"))}
		})
	}
	configMaps := cluster.Client(t).CoreV1().ConfigMaps(namespace)
	owner, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned"}}
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	if _, err := configMaps.Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	kubectl.Run(t, "delete", "configmap", "owner", "-n", namespace)
	kubectl.Run(t, "wait", "configmap/owned", "-n", namespace, "--for=delete", waitTimeout)
	// The garbage collector discovers new kinds every 30 seconds, and has listed
	// our Pods when it deletes one. Until then, the owner to be orphaned must not
	// be deleted: the collector may process it before its dependents, remove its
	// finalizer, and then delete the dependents, because their owner is gone.
	for _, policy := range policies {
		kubectl.Run(t, "delete", pods, policy, "-n", namespace, "--cascade="+policy, "--wait=false")
		if policy == "background" {
			kubectl.Run(t, "wait", pods+"/background-owned", "-n", namespace, "--for=delete", waitTimeout)
		}
	}
	kubectl.Run(t, "wait", pods+"/foreground", pods+"/foreground-owned", pods+"/orphan", "-n", namespace, "--for=delete", waitTimeout)
	orphan, err := cluster.BoroughClient(t).TenancyV1().Pods(namespace).Get(ctx, "orphan-owned", metav1.GetOptions{})
	if err != nil || orphan.DeletionTimestamp != nil || len(orphan.OwnerReferences) > 0 {
		t.Errorf("the orphaned Pod: %+v, error %v", orphan, err)
	}
}
