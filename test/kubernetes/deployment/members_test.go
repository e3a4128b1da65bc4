// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// TestNumberOfMembers installs an etcd with one member. The chart refuses another number of
// members, and so does the cluster, from the kustomization: those that are added would form
// a cluster with a database of its own.
func TestNumberOfMembers(t *testing.T) {
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}, NoControllerManager: true})
	kubeconfig, err := cluster.WriteKubeconfig("helm", cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	helm := func(args ...string) ([]byte, error) {
		args = append(args, "borough", filepath.Join(harness.Root, "artifacts", "charts", "borough"), "--namespace="+testcluster.SystemNamespace)
		return harness.HelmCommand(t.Context(), kubeconfig, home, args...).CombinedOutput()
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testcluster.SystemNamespace}}
	if _, err := cluster.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if out, err := helm("install", "--set=etcd.members=1"); err != nil {
		t.Fatalf("helm install: %v\n%s", err, out)
	}

	// With a value, Helm takes all others from the chart.
	if out, err := helm("upgrade", "--set=image.tag=v2"); err == nil || !bytes.Contains(out, []byte("etcd.members cannot be changed from 1 to 3")) {
		t.Errorf("helm upgrade to three members: %v\n%s", err, out)
	}
	deployments, err := cluster.Client(t).AppsV1().Deployments(testcluster.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		if d.Generation != 1 {
			t.Errorf("helm has changed the Deployment %s", d.Name)
		}
	}
	const refused = "spec.volumeClaimTemplates"
	deploy := filepath.Join(harness.Root, "artifacts", "deploy")
	apply := []string{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--kustomize"}
	kubectl := cluster.Kubectl(t)
	if out := kubectl.Fails(t, append(apply, deploy)...); !strings.Contains(out, refused) {
		t.Errorf("kubectl apply with three members: %s", out)
	}
	kubectl.Run(t, append(apply, filepath.Join(deploy, "overlays", "single-node"))...)
	if out, err := helm("upgrade", "--set=etcd.members=1"); err != nil {
		t.Errorf("helm upgrade with one member: %v\n%s", err, out)
	}
}
