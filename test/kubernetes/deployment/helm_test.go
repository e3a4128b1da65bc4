// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// chart is a cluster in which Helm installs the chart. No Pods run.
type chart struct {
	cluster          *testcluster.Cluster
	kubeconfig, home string
}

// external are the values for an etcd that the chart does not install.
var external = []string{"--set=etcd.mode=external", "--set=etcd.servers={https://etcd.example.com:2379}"}

// helm runs a command for the release, with values.
func (c *chart) helm(t *testing.T, command string, values ...string) ([]byte, error) {
	t.Helper()
	args := append([]string{command, "borough", "--namespace=" + testcluster.SystemNamespace}, values...)
	if command != "uninstall" {
		args = append(args, filepath.Join(harness.Root, "artifacts", "charts", "borough"))
	}
	return harness.HelmCommand(t.Context(), c.kubeconfig, c.home, args...).CombinedOutput()
}

// TestHelm installs, upgrades and uninstalls the chart.
func TestHelm(t *testing.T) {
	c := &chart{cluster: testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}, NoControllerManager: true}), home: t.TempDir()}
	var err error
	if c.kubeconfig, err = c.cluster.WriteKubeconfig("helm", c.cluster.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testcluster.SystemNamespace}}
	if _, err := c.cluster.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("number of members", c.testNumberOfMembers)
	if out, err := c.helm(t, "uninstall"); err != nil {
		t.Fatalf("helm uninstall: %v\n%s", err, out)
	}
	t.Run("another etcd", c.testAnotherEtcd)
	if out, err := c.helm(t, "uninstall"); err != nil {
		t.Fatalf("helm uninstall: %v\n%s", err, out)
	}
	t.Run("Secret", c.testSecret)
	if out, err := c.helm(t, "uninstall"); err != nil {
		t.Fatalf("helm uninstall: %v\n%s", err, out)
	}
	t.Run("conflicts", c.testConflicts)
}

// testConflicts upgrades what others have written. For another number than that of kubectl
// scale, Helm needs no flag; for another caBundle than that of a server it needs
// --force-conflicts, as docs/deploy.md says.
func (c *chart) testConflicts(t *testing.T) {
	if out, err := c.helm(t, "install", external...); err != nil {
		t.Fatalf("helm install: %v\n%s", err, out)
	}
	kubectl := c.cluster.Kubectl(t)
	kubectl.Run(t, "scale", "deployment", "borough-apiserver", "--namespace="+testcluster.SystemNamespace, "--replicas=0")
	if out, err := c.helm(t, "upgrade", append(external, "--set=apiserver.replicas=3")...); err != nil {
		t.Errorf("helm upgrade after kubectl scale: %v\n%s", err, out)
	}
	if got := kubectl.Run(t, "get", "deployment", "borough-apiserver", "--namespace="+testcluster.SystemNamespace, "--output=jsonpath={.spec.replicas}"); got != "3" {
		t.Errorf("after the upgrade there are %s replicas, want 3", got)
	}

	patch := fmt.Sprintf(`{"spec":{"caBundle":%q}}`, base64.StdEncoding.EncodeToString(testcluster.NewCAForTest(t, "server").CertPEM))
	kubectl.Run(t, "patch", "apiservice", "v1.tenancy.borough.io", "--type=merge", "--field-manager=borough-apiserver", "--patch="+patch)
	ca := filepath.Join(c.home, "ca.crt")
	if err := os.WriteFile(ca, testcluster.NewCAForTest(t, "own").CertPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	values := append(external, "--set=certificates.mode=secret", "--set-file=certificates.caBundle="+ca)
	if out, err := c.helm(t, "upgrade", values...); err == nil || !bytes.Contains(out, []byte(".spec.caBundle")) {
		t.Errorf("helm upgrade without --force-conflicts: %v, want a conflict about .spec.caBundle\n%s", err, out)
	}
	if out, err := c.helm(t, "upgrade", append(values, "--force-conflicts")...); err != nil {
		t.Errorf("helm upgrade with --force-conflicts: %v\n%s", err, out)
	}
}

// testNumberOfMembers installs an etcd with one member. The chart refuses another number of
// members, and so does the cluster, from the kustomization: those that are added would form
// a cluster with a database of its own.
func (c *chart) testNumberOfMembers(t *testing.T) {
	if out, err := c.helm(t, "install", "--set=etcd.members=1"); err != nil {
		t.Fatalf("helm install: %v\n%s", err, out)
	}

	// With a value, Helm takes all others from the chart.
	c.refuses(t, "etcd.members cannot be changed from 1 to 3", "--set=image.tag=v2")
	const refused = "spec.volumeClaimTemplates"
	deploy := filepath.Join(harness.Root, "artifacts", "deploy")
	apply := []string{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--kustomize"}
	kubectl := c.cluster.Kubectl(t)
	if out := kubectl.Fails(t, append(apply, deploy)...); !strings.Contains(out, refused) {
		t.Errorf("kubectl apply with three members: %s", out)
	}
	kubectl.Run(t, append(apply, filepath.Join(deploy, "overlays", "single-node"))...)
	if out, err := c.helm(t, "upgrade", "--set=etcd.members=1"); err != nil {
		t.Errorf("helm upgrade with one member: %v\n%s", err, out)
	}
}

// testAnotherEtcd installs servers with an etcd of the user. The chart refuses to give them
// another one while they run.
func (c *chart) testAnotherEtcd(t *testing.T) {
	const etcd = "etcd.mode and etcd.servers cannot be changed while servers run"
	if out, err := c.helm(t, "install", external...); err != nil {
		t.Fatalf("helm install: %v\n%s", err, out)
	}
	c.refuses(t, etcd, "--set=image.tag=v2")
	other := []string{external[0], "--set=etcd.servers={https://other.example.com:2379}"}
	c.refuses(t, etcd, other...)

	// Addresses of the same etcd change in two steps.
	both := []string{external[0], "--set=etcd.servers={https://other.example.com:2379,https://etcd.example.com:2379}"}
	for _, values := range [][]string{both, other, both, external} {
		if out, err := c.helm(t, "upgrade", values...); err != nil {
			t.Errorf("helm upgrade %v: %v\n%s", values, err, out)
		}
	}
	c.cluster.Kubectl(t).Run(t, "scale", "deployment", "borough-apiserver", "--namespace="+testcluster.SystemNamespace, "--replicas=0")
	if out, err := c.helm(t, "upgrade", other...); err != nil {
		t.Errorf("helm upgrade without servers: %v\n%s", err, out)
	}
}

// refuses upgrades with values that the chart must refuse, before it changes a Deployment.
func (c *chart) refuses(t *testing.T, reason string, values ...string) {
	t.Helper()
	if out, err := c.helm(t, "upgrade", values...); err == nil || !bytes.Contains(out, []byte(reason)) {
		t.Errorf("helm upgrade %v: %v, want %q\n%s", values, err, reason, out)
	}
	deployments, err := c.cluster.Client(t).AppsV1().Deployments(testcluster.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(deployments.Items) == 0 {
		t.Error("there are no Deployments")
	}
	for _, d := range deployments.Items {
		if d.Generation != 1 {
			t.Errorf("helm has changed the Deployment %s", d.Name)
		}
	}
}

// testSecret installs the chart, where a server has created the Secret, and upgrades it.
// The Secret keeps its content.
func (c *chart) testSecret(t *testing.T) {
	secrets := c.cluster.Client(t).CoreV1().Secrets(testcluster.SystemNamespace)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: []byte("certificate"), corev1.TLSPrivateKeyKey: []byte("key"), "ca.crt": []byte("CA")},
	}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if out, err := c.helm(t, "install", external...); err == nil || !bytes.Contains(out, []byte("invalid ownership metadata")) {
		t.Errorf("helm install: %v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"install", "--take-ownership"},
		{"upgrade", "--set=apiserver.replicas=3"},
		{"upgrade", "--set=apiserver.replicas=4"},
	} {
		if out, err := c.helm(t, args[0], append(external, args[1])...); err != nil {
			t.Fatalf("helm %v: %v\n%s", args, err, out)
		}
		after, err := secrets.Get(t.Context(), certSecret, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(after.Data, secret.Data, bytes.Equal) {
			t.Errorf("the Secret has %d keys after helm %s", len(after.Data), args[0])
		}
	}
}
