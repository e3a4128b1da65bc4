// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"bytes"
	"maps"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// TestHelmKeepsSecret installs the chart, where a server has created the Secret, and
// upgrades it. The Secret keeps its content.
func TestHelmKeepsSecret(t *testing.T) {
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}, NoControllerManager: true})
	kubeconfig, err := cluster.WriteKubeconfig("helm", cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	helm := func(args ...string) ([]byte, error) {
		return harness.HelmCommand(t.Context(), kubeconfig, home, args...).CombinedOutput()
	}
	values := []string{"borough", filepath.Join(harness.Root, "artifacts", "charts", "borough"), "--namespace=" + testcluster.SystemNamespace,
		"--set=etcd.mode=external", "--set=etcd.servers={https://etcd.example.com:2379}"}
	install, upgrade := append([]string{"install"}, values...), append([]string{"upgrade"}, values...)

	client := cluster.Client(t)
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testcluster.SystemNamespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secrets := client.CoreV1().Secrets(testcluster.SystemNamespace)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: []byte("certificate"), corev1.TLSPrivateKeyKey: []byte("key"), "ca.crt": []byte("CA")},
	}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if out, err := helm(install...); err == nil || !bytes.Contains(out, []byte("invalid ownership metadata")) {
		t.Errorf("helm install: %v\n%s", err, out)
	}
	for _, args := range [][]string{
		append(install, "--take-ownership"),
		append(upgrade, "--set=apiserver.replicas=3"),
		append(upgrade, "--set=apiserver.replicas=4"),
	} {
		if out, err := helm(args...); err != nil {
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
