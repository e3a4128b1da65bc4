// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// TestServerRights checks what a user who has the token of the servers cannot do:
// change the APIService, except for its caBundle, or use other Secrets.
func TestServerRights(t *testing.T) {
	cluster := testcluster.New(t, testcluster.Options{
		Etcd:        testcluster.EtcdOptions{Unsafe: true},
		Controllers: []string{"validatingadmissionpolicy-status-controller"},
	})
	d := &deployment{cluster: cluster, client: cluster.Client(t)}
	d.apply(t, "--server-side")
	await(t, "rights of the servers", d.granted)
	config, err := cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, serverName)
	if err != nil {
		t.Fatal(err)
	}
	server, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	patch := func(ctx context.Context, client kubernetes.Interface, patch string) error {
		return client.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(apiService).Body([]byte(patch)).Param("dryRun", "All").Do(ctx).Error()
	}
	const redirect = `{"spec": {"service": {"name": "kubernetes", "namespace": "default"}}}`
	await(t, "policy", func(ctx context.Context) error {
		if err := patch(ctx, server, redirect); err == nil {
			return errors.New("the servers may still change the Service")
		}
		return nil
	})
	if err := patch(t.Context(), d.client, redirect); err != nil {
		t.Errorf("the administrator: %v", err)
	}

	await(t, "types of the policy to be checked", func(ctx context.Context) error {
		policy, err := d.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, "borough-apiserver-ca-bundle", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if policy.Status.ObservedGeneration != policy.Generation {
			return errors.New("no status yet")
		}
		if checked := policy.Status.TypeChecking; checked != nil && len(checked.ExpressionWarnings) > 0 {
			t.Errorf("the policy has warnings: %v", checked.ExpressionWarnings)
		}
		return nil
	})

	for _, change := range []string{
		redirect,
		`{"spec": {"insecureSkipTLSVerify": true}}`,
		`{"spec": {"insecureSkipTLSVerify": true, "caBundle": null}}`,
		`{"spec": {"service": {"port": 444}}}`,
		`{"spec": {"service": null}}`,
		`{"spec": {"versionPriority": 99}}`,
		`{"spec": {"groupPriorityMinimum": 20000}}`,
		`{"spec": {"caBundle": "Zm9yZWlnbg==", "versionPriority": 99}}`,
		`{"metadata": {"labels": {"other": "label"}}}`,
		`{"metadata": {"labels": {"app.kubernetes.io/part-of": null}}}`,
		`{"metadata": {"labels": null}}`,
		`{"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "other/certificate"}}}`,
		`{"metadata": {"finalizers": ["example.com/stay"]}}`,
		`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "1"}]}}`,
	} {
		if err := patch(t.Context(), server, change); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'borough-apiserver-ca-bundle'") {
			t.Errorf("%s: %v", change, err)
		}
	}
	for _, change := range []string{`{"spec": {"caBundle": "Zm9yZWlnbg=="}}`, `{"spec": {"caBundle": null}}`, `{}`} {
		if err := patch(t.Context(), server, change); err != nil {
			t.Errorf("%s: %v", change, err)
		}
	}

	ctx, secrets := t.Context(), server.CoreV1().Secrets(testcluster.SystemNamespace)
	content := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if _, err := d.client.CoreV1().Secrets(testcluster.SystemNamespace).Create(ctx, content.DeepCopy(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get := func(_ *corev1.Secret, err error) error { return err }
	for name, err := range map[string]error{
		"create":                   get(secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "created"}}, metav1.CreateOptions{})),
		"get another":              get(secrets.Get(ctx, "other", metav1.GetOptions{})),
		"update another":           get(secrets.Update(ctx, content, metav1.UpdateOptions{})),
		"delete its own":           secrets.Delete(ctx, certSecret, metav1.DeleteOptions{}),
		"list all":                 func() error { _, err := secrets.List(ctx, metav1.ListOptions{}); return err }(),
		"replace the APIService":   server.Discovery().RESTClient().Put().AbsPath(apiService).Body([]byte("{}")).Do(ctx).Error(),
		"delete the APIService":    server.Discovery().RESTClient().Delete().AbsPath(apiService).Do(ctx).Error(),
		"status of the APIService": server.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(apiService, "status").Body([]byte("{}")).Do(ctx).Error(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := secrets.Get(ctx, certSecret, metav1.GetOptions{}); err != nil {
		t.Error(fmt.Errorf("get its own: %w", err))
	}
	t.Run("doctor", d.testDoctor)
}

// testDoctor checks that doctor reports a fault without the policy.
func (d *deployment) testDoctor(t *testing.T) {
	kubeconfig, err := d.cluster.WriteKubeconfig("doctor", d.cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	path, err := harness.Binary(serverName)
	if err != nil {
		t.Fatal(err)
	}
	awaitLine := func(want string) {
		t.Helper()
		await(t, "line of doctor", func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, path, "doctor", "--kubeconfig="+kubeconfig).Output()
			if !strings.Contains(string(out), want) {
				return fmt.Errorf("doctor reports (%w)\n%s", err, out)
			}
			return nil
		})
	}
	awaitLine("ok     caBundle policy: system:serviceaccount:borough-system:borough-apiserver cannot change other fields")
	d.cluster.Kubectl(t).Run(t, "delete", "validatingadmissionpolicybinding", "borough-apiserver-ca-bundle")
	awaitLine("FAULT  caBundle policy: system:serviceaccount:borough-system:borough-apiserver can change all fields")
}
