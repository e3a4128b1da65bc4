// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster"
)

// want is the word on a fault: a part of the message, and one of the cure.
type want struct{ message, cure string }

// TestFaults does each fault to a deployment that is well, and undoes it.
func TestFaults(t *testing.T) {
	d := deploy(t, hostcluster.New(t, hostcluster.Options{Etcd: hostcluster.EtcdOptions{Unsafe: true}}))
	const namespace = "--namespace=" + hostcluster.SystemNamespace
	for _, tc := range []struct {
		name   string
		inject func(t *testing.T)
		want   map[string]want // by check; no other has a fault
	}{
		{"APIService missing", func(t *testing.T) { d.remove(t, "apiservice", apiServiceName) },
			map[string]want{"APIService": {"does not exist", "kubectl apply"}}},
		{"Service missing", func(t *testing.T) { d.remove(t, "service", serverName, namespace) },
			map[string]want{"APIService available": {"ServiceNotFound", "create the Service borough-system/borough-apiserver"}}},
		{"no server ready", func(t *testing.T) {
			server := d.borough.Servers[0]
			if err := server.SetReady(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := server.SetReady(context.WithoutCancel(t.Context()), true); err != nil {
					t.Error(err)
				}
			})
		}, map[string]want{"APIService available": {"MissingEndpoints", "no server is ready"}}},

		{"wrong caBundle", func(t *testing.T) { d.trust(t, newCA(t, "ca").CertPEM) }, map[string]want{
			"APIService available": {"x509", "see the check caBundle"},
			"caBundle":             {"the serving certificate in the Secret borough-system/borough-apiserver-tls is not signed by a CA in caBundle", "kubectl patch apiservice"},
		}},
		{"no caBundle", func(t *testing.T) { d.trust(t, nil) }, map[string]want{
			"APIService available": {"x509", "see the check caBundle"},
			"caBundle":             {"it is empty", "kubectl patch apiservice"},
		}},
		{"caBundle is no certificate", func(t *testing.T) { d.trust(t, []byte("garbage")) }, map[string]want{
			"caBundle":            {"certificates in PEM", "kubectl patch apiservice"},
			"front-proxy headers": {"certificate", "see the check caBundle"},
		}},
		{"insecureSkipTLSVerify", func(t *testing.T) {
			d.patchAPIService(t, map[string]any{"caBundle": nil, "insecureSkipTLSVerify": true})
		}, map[string]want{"caBundle": {"insecureSkipTLSVerify is set", "remove insecureSkipTLSVerify"}}},

		{"delegator binding missing", func(t *testing.T) { d.remove(t, "clusterrolebinding", "borough-apiserver-auth-delegator") },
			map[string]want{"delegator binding": {
				"may not create tokenreviews of authentication.k8s.io, nor create subjectaccessreviews of authorization.k8s.io",
				"kubectl create clusterrolebinding borough-apiserver-auth-delegator --clusterrole=system:auth-delegator --serviceaccount=borough-system:borough-apiserver",
			}}},
		{"reader binding missing", func(t *testing.T) {
			d.remove(t, "rolebinding", "borough-apiserver-auth-reader", "--namespace=kube-system")
		},
			map[string]want{"reader binding": {
				"may not get/list/watch configmaps extension-apiserver-authentication in kube-system",
				"kubectl create rolebinding borough-apiserver-auth-reader --namespace=kube-system",
			}}},
		{"rights missing", func(t *testing.T) { d.remove(t, "clusterrolebinding", serverName) },
			map[string]want{"rights": {"list/watch validatingadmissionpolicies, validatingadmissionpolicybindings of admissionregistration.k8s.io", "apply the manifests"}}},

		{"front-proxy headers not trusted", func(t *testing.T) {
			trusted := "--requestheader-client-ca-file=" + file(t, "ca.crt", newCA(t, "not-the-front-proxy-ca").CertPEM)
			d.keep(t, "deployment", serverName, namespace)
			d.change(t, func(spec *corev1.PodSpec) { spec.Containers[0].Args = append(spec.Containers[0].Args, trusted) })
			ca := d.replaceServer(t, trusted)
			d.trust(t, append(ca, d.borough.CA()...))
		}, map[string]want{
			"APIService available": {"bad status", "see the check front-proxy headers"},
			"front-proxy headers":  {"does not take the host for whom it is", "remove --requestheader-client-ca-file from the arguments"},
		}},

		{"etcd unreachable", func(t *testing.T) {
			etcd := d.etcd.Members[0].Process
			if err := etcd.Pause(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := etcd.Resume(); err != nil {
					t.Error(err)
				}
			})
		}, map[string]want{
			"etcd": {"the server answers without etcd, but not what it needs etcd for", "every member of etcd runs"},
			"pods": {"borough-apiserver-0: not ready, for etcd", "every member of etcd runs"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// That it is well again shows that the fault before was no other.
			await(t, d.kubeconfig, nil)
			tc.inject(t)
			await(t, d.kubeconfig, tc.want)
			t.Logf("doctor says:\n%s", run(t, d.kubeconfig))
		})
	}
	await(t, d.kubeconfig, nil)
	all := findings(t, d.kubeconfig)
	for _, f := range all {
		if f.Status != "ok" {
			t.Errorf("%+v", f)
		}
	}
	t.Logf("doctor says of a deployment that is well:\n%s", run(t, d.kubeconfig))

	t.Run("a user who may not see it", func(t *testing.T) {
		config, err := d.cluster.UserConfig("bystander")
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := d.cluster.WriteKubeconfig("bystander", config)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings(t, kubeconfig) {
			sees := f.Check == "host" || f.Check == "host version" || f.Check == "clocks"
			if want := map[bool]string{true: "ok", false: "skipped"}[sees]; f.Status != want {
				t.Errorf("%+v, want it %s", f, want)
			}
		}
		t.Logf("doctor says:\n%s", run(t, kubeconfig))
	})
}

// TestOldHost asks a host of the version before, and follows the advice.
func TestOldHost(t *testing.T) {
	cluster := hostcluster.New(t, hostcluster.Options{
		Etcd:           hostcluster.EtcdOptions{Unsafe: true},
		APIServerFlags: []string{"--emulated-version=1.35"},
	})
	kubeconfig, err := cluster.WriteKubeconfig("doctor", cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is deployed there either.
	await(t, kubeconfig, map[string]want{
		"host version": {"the host is too old: Kubernetes v1.36.3, emulating 1.35, does not serve mutatingadmissionpolicies and mutatingadmissionpolicybindings of admissionregistration.k8s.io/v1 (served since Kubernetes 1.36)",
			"--disable-admission-plugins=MutatingAdmissionPolicy"},
		"deployment":        {"no Deployment in the namespace borough-system", "deploy Borough"},
		"service account":   {"does not exist", "kubectl create serviceaccount"},
		"delegator binding": {"may not create", "clusterrolebinding"},
		"reader binding":    {"may not get/list/watch", "rolebinding"},
		"rights":            {"may not list/watch", "apply the manifests"},
		"APIService":        {"does not exist", "kubectl apply"},
	})
	t.Logf("doctor says:\n%s", run(t, kubeconfig))

	d := deploy(t, cluster, "--disable-admission-plugins=MutatingAdmissionPolicy")
	if _, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "written"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	await(t, d.kubeconfig, nil)
}

// await waits until doctor finds these faults, and no other.
func await(t *testing.T, kubeconfig string, faults map[string]want) {
	t.Helper()
	harness.Eventually(t, func() string {
		var found []string
		var reasons strings.Builder
		for _, f := range findings(t, kubeconfig) {
			if f.Status != "fault" {
				continue
			}
			found = append(found, f.Check)
			if w := faults[f.Check]; !strings.Contains(f.Message, w.message) || !strings.Contains(f.Cure, w.cure) || w == (want{}) {
				fmt.Fprintf(&reasons, "\ngot  %+v\nwant %+v", f, w)
			}
		}
		for check, w := range faults {
			if !slices.Contains(found, check) {
				fmt.Fprintf(&reasons, "\nno fault of %s, want %+v", check, w)
			}
		}
		return reasons.String()
	})
}
