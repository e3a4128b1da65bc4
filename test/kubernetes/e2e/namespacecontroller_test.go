// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// TestUnlistedNamespaceController deletes namespaces of a cluster whose namespace
// controller authenticates as an administrator, a user that
// --cluster-namespace-controllers does not list. The content of our Namespace
// of the same name stays. The conditions of the cluster's namespace report why
// it remains, and it is removed once our Namespace is.
func TestUnlistedNamespaceController(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}, AdminControllerManager: true})
	borough := cluster.NewBorough(t, testcluster.BoroughOptions{Etcd: cluster.Etcd, ServerFlags: []string{"--etcd-prefix=/borough"}})
	core, client := cluster.Client(t).CoreV1(), cluster.BoroughClient(t).TenancyV1()

	const both, coreOnly = "both", "core-only"
	for _, name := range []string{both, coreOnly} {
		if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: both}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := client.Pods(both).Create(ctx, harness.NewPod("stays"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{both, coreOnly} {
		if err := core.Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	removed := func(name string) func() string {
		return func() string {
			ns, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return ""
			}
			return fmt.Sprintf("the cluster's namespace remains: %+v, error %v", ns, err)
		}
	}
	// Without a Namespace of that name, the cluster's namespace is removed.
	poll.Eventually(t, removed(coreOnly))

	poll.Eventually(t, func() string {
		ns, err := core.Namespaces().Get(ctx, both, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("the cluster's namespace is removed, or the request failed: %v", err)
		}
		for _, condition := range ns.Status.Conditions {
			if condition.Type == corev1.NamespaceDeletionContentFailure && condition.Status == corev1.ConditionTrue &&
				strings.Contains(condition.Message, `"admin"`) && strings.Contains(condition.Message, "--cluster-namespace-controllers") {
				return ""
			}
		}
		return fmt.Sprintf("no condition of the cluster's namespace reports why it remains: %+v", ns.Status.Conditions)
	})
	got, err := client.Pods(both).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || got.UID != pod.UID || got.DeletionTimestamp != nil {
		t.Errorf("our Pod: %+v, error %v", got, err)
	}
	if ns, err := client.Namespaces().Get(ctx, both, metav1.GetOptions{}); err != nil || ns.Status.Phase != v1.NamespaceActive {
		t.Errorf("our Namespace: %+v, error %v", ns, err)
	}
	if log := borough.Servers[0].Process.Output(); !strings.Contains(log, "Rejected a purge by the namespace controller of the cluster") {
		t.Errorf("the server did not log it:\n%s", log)
	}
	// An administrator can still delete anything through another client.
	if err := client.Pods(both).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if err := client.Namespaces().Delete(ctx, both, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, goneFrom(t, cluster, both))
	poll.Eventually(t, removed(both))
}
