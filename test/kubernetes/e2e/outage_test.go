// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// newCluster returns a separate cluster with a deployment of Borough: two
// servers, two controllers, and an etcd.
func newCluster(t *testing.T, serverFlags ...string) (*testcluster.Cluster, *testcluster.Borough) {
	t.Helper()
	ctx := t.Context()
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}})
	borough := cluster.NewBorough(t, testcluster.BoroughOptions{
		Etcd:            testcluster.StartEtcdForTest(t, filepath.Join(cluster.Dir, "borough-etcd"), testcluster.EtcdOptions{Unsafe: true}),
		ServerFlags:     serverFlags,
		ControllerFlags: testcluster.ShortLease,
	})
	if _, err := borough.AddServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := borough.AddController(ctx); err != nil {
		t.Fatal(err)
	}
	return cluster, borough
}

// TestOutages stops one component after the other.
func TestOutages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster, borough := newCluster(t)
	client := cluster.BoroughClient(t).TenancyV1()
	create := func(name string) {
		t.Helper()
		if _, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	// The leading controller dies; the other takes over.
	leases := cluster.Client(t).CoordinationV1().Leases(testcluster.SystemNamespace)
	holder := func() string {
		lease, err := leases.Get(ctx, "borough-controller-manager", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			t.Fatalf("the Lease: %+v, error %v", lease, err)
		}
		return *lease.Spec.HolderIdentity
	}
	first := holder()
	borough.Controllers[0].Process.Kill()
	create("after-controller")
	if err := client.Namespaces().Delete(ctx, "after-controller", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		if second := holder(); second == first {
			return second + " still leads"
		}
		return ""
	})
	poll.Eventually(t, goneFrom(t, cluster, "after-controller"))

	// A server dies; clients whose connection breaks retry with the other.
	borough.Servers[0].Process.Kill()
	poll.Eventually(t, func() string {
		if _, err := client.Namespaces().List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := borough.Servers[0].SetReady(ctx, false); err != nil {
		t.Fatal(err)
	}
	if err := borough.Servers[0].Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := borough.Servers[0].SetReady(ctx, true); err != nil {
		t.Fatal(err)
	}

	// Our etcd hangs; the cluster's discovery still returns our kinds quickly.
	member := borough.Etcd().Members[0]
	if err := member.Process.Pause(); err != nil {
		t.Fatal(err)
	}
	etcdHangs(t, cluster, borough)
	if err := member.Process.Resume(); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		_, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "after-etcd"}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})

	namespacesRejected(t, cluster, borough)
	serversDown(t, cluster, borough)
}

// rejectNamespaces is a policy that rejects every Namespace without a label.
const rejectNamespaces = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: team
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [tenancy.borough.io], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}
  validations:
  - expression: "'team' in object.metadata.?labels.orValue({})"
    message: every Namespace needs the label team
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: team
spec:
  policyName: team
  validationActions: [Deny]
`

// namespacesRejected restarts a server while a policy rejects the Namespace
// default, which exists and then does not.
func namespacesRejected(t *testing.T, cluster *testcluster.Cluster, borough *testcluster.Borough) {
	t.Helper()
	ctx := t.Context()
	namespaces := cluster.BoroughClient(t).TenancyV1().Namespaces()
	cluster.Kubectl(t).RunWith(t, rejectNamespaces, "apply", "-f", "-")
	poll.Eventually(t, func() string {
		if _, err := namespaces.Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "no-team-"}}, metav1.CreateOptions{}); err != nil && strings.Contains(err.Error(), "needs the label team") {
			return ""
		}
		return "the policy is not in force"
	})
	restart := func() {
		t.Helper()
		borough.Servers[1].Process.Kill()
		if err := borough.Servers[1].Start(ctx); err != nil {
			t.Fatalf("restart a server: %v", err)
		}
	}
	restart()
	etcd, err := borough.Etcd().NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = etcd.Close() }()
	if _, err := etcd.Delete(ctx, "/registry/tenancy.borough.io/namespaces/default"); err != nil {
		t.Fatal(err)
	}
	restart()
	cluster.Kubectl(t).RunWith(t, rejectNamespaces, "delete", "-f", "-")
	poll.Eventually(t, func() string {
		if _, err := namespaces.Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestCoupled checks that our Namespace is deleted together with the cluster's
// namespace of the same name.
func TestCoupled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster, _ := newCluster(t, "--couple-cluster-namespaces")
	client := cluster.BoroughClient(t).TenancyV1()
	for _, name := range []string{"coupled", "alone"} {
		if _, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.LimitRanges(name).Create(ctx, newLimitRange(corev1.LimitTypePod), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "create", "namespace", "coupled")
	kubectl.Run(t, "delete", "namespace", "coupled", waitTimeout)
	poll.Eventually(t, goneFrom(t, cluster, "coupled"))
	if _, err := client.LimitRanges("alone").Get(ctx, "limits", metav1.GetOptions{}); err != nil {
		t.Errorf("another Namespace: %v", err)
	}
}
