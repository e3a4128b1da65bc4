// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster"
)

const controllerUser = "system:serviceaccount:" + hostcluster.SystemNamespace + ":borough-controller-manager"

// TestPurge deletes a Namespace with kubectl, which waits until it is gone. The
// controller works through the cluster, as its service account.
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
		t.Errorf("got %d Pods that are left, error %v", len(left.Items), err)
	}
	harness.Eventually(t, func() string {
		return findAudit(t, func(event auditEvent) bool {
			return event.Verb == "deletecollection" && event.User.Username == controllerUser &&
				event.ObjectRef.Resource == "pods" && event.ObjectRef.Namespace == namespace
		})
	})
}

// TestPurgeNamesWhatBlocks leaves a finalizer on a Pod and reads the condition.
func TestPurgeNamesWhatBlocks(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	newPod(t, namespace, "held", func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} })
	kubectl.Run(t, "delete", namespaces, namespace, "--wait=false")
	kubectl.Run(t, "wait", namespaces+"/"+namespace, "--for=condition=NamespaceFinalizersRemaining", "--timeout=60s")
	wantJSONPath(t, kubectl, namespaces+"/"+namespace, `{.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].message}`,
		"Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances")
	kubectl.Run(t, "patch", pods, "held", "-n", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	kubectl.Run(t, "wait", namespaces+"/"+namespace, "--for=delete", "--timeout=60s")
}

// TestLeader finds the controller in the Lease that it was elected by.
func TestLeader(t *testing.T) {
	t.Parallel()
	leases := cluster.Client(t).CoordinationV1().Leases(hostcluster.SystemNamespace)
	harness.Eventually(t, func() string {
		lease, err := leases.Get(t.Context(), "borough-controller-manager", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return "the Lease has no holder"
		}
		return ""
	})
}

// TestHostNamespace deletes the host's namespace of the same name: the host's
// namespace controller, which deletes our kinds too, leaves ours alone.
func TestHostNamespace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	host := cluster.Client(t).CoreV1()
	namespace := newNamespace(t)
	pod := newPod(t, namespace, "stays")
	newHostNamespace(t, namespace)
	if _, err := host.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "goes"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t).Run(t, "delete", "namespace", namespace, "--timeout=60s")

	client := cluster.BoroughClient(t).TenancyV1()
	got, err := client.Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || got.UID != pod.UID || got.DeletionTimestamp != nil {
		t.Errorf("after the host's namespace went, our Pod: %+v, error %v", got, err)
	}
	ns, err := client.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil || ns.Status.Phase != v1.NamespaceActive {
		t.Errorf("after the host's namespace went, ours: %+v, error %v", ns, err)
	}
	// It did come by.
	harness.Eventually(t, func() string {
		return findAudit(t, func(event auditEvent) bool {
			return event.Verb == "deletecollection" && strings.HasSuffix(event.User.Username, ":namespace-controller") &&
				event.ObjectRef.Namespace == namespace
		})
	})
}

// TestOwnerReferences has the host's garbage collector delete what is owned.
func TestOwnerReferences(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	namespace := newNamespace(t)
	owner := newPod(t, namespace, "owner")
	newPod(t, namespace, "owned", func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.SchemeGroupVersion.WithKind("Pod"))}
	})
	kubectl.Run(t, "delete", pods, "owner", "-n", namespace)
	// The collector looks for new kinds every half minute.
	kubectl.Run(t, "wait", pods+"/owned", "-n", namespace, "--for=delete", "--timeout=90s")
}
