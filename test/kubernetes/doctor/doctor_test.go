// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// want is a part of a finding's message and a part of its fix.
type want struct{ message, fix string }

// paramPolicy is a policy with a binding that has no namespace in its paramRef.
const paramPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: team-limits
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: ["tenancy.borough.io"], apiVersions: ["*"], operations: ["CREATE"], resources: ["pods"]}
  validations:
  - expression: "params == null || !has(params.data)"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: team-limits
spec:
  policyName: team-limits
  validationActions: ["Deny"]
  paramRef: {name: limits, parameterNotFoundAction: Allow}
`

// TestFaults causes each fault in a healthy deployment, and reverts it.
func TestFaults(t *testing.T) {
	d := deploy(t, testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}}))
	const namespace = "--namespace=" + testcluster.SystemNamespace
	for _, tc := range []struct {
		name   string
		inject func(t *testing.T)
		want   map[string]want // by check; no other check may report a fault
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

		{"wrong caBundle", func(t *testing.T) { d.trust(t, testcluster.NewCAForTest(t, "ca").CertPEM) }, map[string]want{
			"APIService available": {"x509", "see the check caBundle"},
			"caBundle":             {"the serving certificate in the Secret borough-system/borough-apiserver-tls is not signed by a CA in caBundle", "kubectl patch apiservice"},
		}},
		{"no caBundle", func(t *testing.T) { d.trust(t, nil) }, map[string]want{
			"APIService available": {"x509", "see the check caBundle"},
			"caBundle":             {"it is empty", "kubectl patch apiservice"},
		}},
		{"serving certificate for another name", func(t *testing.T) {
			d.trust(t, append(d.replaceServer(t, "another.name"), d.borough.CA()...))
		}, map[string]want{"APIService available": {"x509: certificate is valid for", "must be for the name " + serviceName}}},
		{"server hangs", func(t *testing.T) {
			server := d.borough.Servers[0].Process
			if err := server.Pause(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := server.Resume(); err != nil {
					t.Error(err)
				}
			})
		}, map[string]want{"APIService available": {"FailedDiscoveryCheck", "NetworkPolicies"}}},
		{"caBundle is no certificate", func(t *testing.T) { d.trust(t, []byte("garbage")) }, map[string]want{
			"caBundle":            {"PEM certificates", "kubectl patch apiservice"},
			"front-proxy headers": {"certificate", "see the checks caBundle"},
		}},
		{"insecureSkipTLSVerify", func(t *testing.T) {
			d.patchAPIService(t, map[string]any{"caBundle": nil, "insecureSkipTLSVerify": true})
		}, map[string]want{"caBundle": {"insecureSkipTLSVerify is set", "remove insecureSkipTLSVerify"}}},

		{"delegator binding missing", func(t *testing.T) { d.remove(t, "clusterrolebinding", "borough-apiserver-auth-delegator") },
			map[string]want{"delegator binding": {
				"cannot create tokenreviews of authentication.k8s.io, or create subjectaccessreviews of authorization.k8s.io",
				"kubectl create clusterrolebinding borough-apiserver-auth-delegator --clusterrole=system:auth-delegator --serviceaccount=borough-system:borough-apiserver",
			}}},
		{"reader binding missing", func(t *testing.T) {
			d.remove(t, "rolebinding", "borough-apiserver-auth-reader", "--namespace=kube-system")
		},
			map[string]want{"reader binding": {
				"cannot get/list/watch configmaps extension-apiserver-authentication in kube-system",
				"kubectl create rolebinding borough-apiserver-auth-reader --namespace=kube-system",
			}}},
		{"rights missing", func(t *testing.T) { d.remove(t, "clusterrolebinding", serverName) },
			map[string]want{"rights": {"list/watch validatingadmissionpolicies, validatingadmissionpolicybindings of admissionregistration.k8s.io", "apply the manifests"}}},

		{"controller stopped", func(t *testing.T) {
			controller := d.borough.Controllers[0]
			if err := controller.Process.Stop(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := controller.Start(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}, map[string]want{"controller": {"no controller holds the Lease borough-system/borough-controller-manager", "kubectl logs deployment/borough-controller-manager"}}},
		{"Pods missing", func(t *testing.T) {
			for _, name := range []string{serverName, "borough-controller-manager"} {
				d.keep(t, "deployment", name, namespace)
				d.kubectl.Run(t, "scale", "deployment", name, namespace, "--replicas=2")
			}
		}, map[string]want{
			"pods":       {"1 of 2 Pods of the Deployment borough-apiserver exist", "kubectl describe replicasets"},
			"controller": {"holds the Lease; not all Pods of the controller are ready: 0 of 2 Pods of the Deployment borough-controller-manager exist", "kubectl describe replicasets"},
		}},
		{"servers on one node", func(t *testing.T) {
			d.apply(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}}`)
			d.apply(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-b"}}`)
			// No kubelet runs that would be ready.
			d.kubectl.Run(t, "taint", "nodes", "--all", "node.kubernetes.io/not-ready:NoSchedule-")
			for _, name := range []string{serverName + "-1", serverName + "-2"} {
				d.createPod(t, name, "node-a")
				t.Cleanup(func() {
					if _, stderr, err := d.kubectl.Try(context.WithoutCancel(t.Context()), "", "delete", "pod", name, namespace, "--force"); err != nil {
						t.Errorf("delete %s: %v\n%s", name, err, stderr)
					}
				})
			}
		}, map[string]want{"server nodes": {"all 2 ready servers run on the node node-a, and the API is unavailable when it fails; nodes that also accept them: 1", "kubectl rollout restart deployment/borough-apiserver"}}},
		{"controller binding missing", func(t *testing.T) { d.remove(t, "clusterrolebinding", "borough-controller-manager") },
			map[string]want{"controller rights": {"borough-controller-manager cannot get/list/watch/delete namespaces of tenancy.borough.io", "apply the manifests"}}},

		{"FlowSchemas missing", func(t *testing.T) {
			d.remove(t, "flowschema", "borough-reviews")
			d.remove(t, "flowschema", "borough")
		}, map[string]want{"flow control": {
			"TokenReviews (workload-low), SubjectAccessReviews (workload-low), requests of the controller (workload-low)", "apply the manifests",
		}}},
		{"FlowSchema of the Lease missing", func(t *testing.T) {
			d.remove(t, "flowschema", "borough-leader-election")
			d.remove(t, "flowschema", "borough")
		}, map[string]want{"flow control": {"same priority level of kube-apiserver: the Lease (workload-low), requests of the controller (workload-low)", "apply the manifests"}}},

		{"parameters in the namespace of the request", func(t *testing.T) { d.apply(t, paramPolicy) },
			map[string]want{"admission policies": {"team-limits of the ValidatingAdmissionPolicy team-limits", "set spec.paramRef.namespace"}}},

		{"namespace controller not named", func(t *testing.T) {
			d.keep(t, "deployment", serverName, namespace)
			d.change(t, func(spec *corev1.PodSpec) {
				spec.Containers[0].Args = append(spec.Containers[0].Args, "--cluster-namespace-controllers=other")
			})
		}, map[string]want{"namespace controller": {"does not name system:serviceaccount:kube-system:namespace-controller", "remove the flag"}}},

		{"front-proxy headers not trusted", func(t *testing.T) {
			trusted := "--requestheader-client-ca-file=" + file(t, "ca.crt", testcluster.NewCAForTest(t, "not-the-front-proxy-ca").CertPEM)
			d.keep(t, "deployment", serverName, namespace)
			d.change(t, func(spec *corev1.PodSpec) { spec.Containers[0].Args = append(spec.Containers[0].Args, trusted) })
			ca := d.replaceServer(t, serviceName, trusted)
			d.trust(t, append(ca, d.borough.CA()...))
		}, map[string]want{
			"APIService available": {"bad status", "see the check front-proxy headers"},
			"front-proxy headers":  {"does not authenticate kube-apiserver", "remove --requestheader-client-ca-file from the arguments"},
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
			"etcd": {"the server responds, but a request that needs etcd fails", "every member of etcd runs"},
			"pods": {"borough-apiserver-0: not ready, failed checks: etcd", "every member of etcd runs"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Once reverted, no fault remains, so the fault was the only one.
			await(t, d.kubeconfig, nil)
			tc.inject(t)
			await(t, d.kubeconfig, tc.want)
		})
	}
	await(t, d.kubeconfig, nil)
	all := findings(t, d.kubeconfig)
	for _, f := range all {
		if f.Status != "ok" {
			t.Errorf("%+v", f)
		}
	}
	t.Logf("output of doctor for a healthy deployment:\n%s", run(t, d.kubeconfig))

	t.Run("a user without the right to read", func(t *testing.T) {
		config, err := d.cluster.UserConfig("bystander")
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := d.cluster.WriteKubeconfig("bystander", config)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings(t, kubeconfig) {
			sees := f.Check == "cluster" || f.Check == "cluster version" || f.Check == "clocks"
			if want := map[bool]string{true: "ok", false: "skipped"}[sees]; f.Status != want {
				t.Errorf("%+v, want status %s", f, want)
			}
		}
		t.Logf("output of doctor:\n%s", run(t, kubeconfig))
	})
}

// TestUnlistedNamespaceController runs doctor in a cluster whose controllers
// authenticate as an administrator, before and after the server rejects a
// purge.
func TestUnlistedNamespaceController(t *testing.T) {
	d := deploy(t, testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}, AdminControllerManager: true}))
	await(t, d.kubeconfig, nil)
	for _, f := range findings(t, d.kubeconfig) {
		if f.Check == "namespace controller" && (f.Status != "skipped" || !strings.Contains(f.Message, "system:kube-controller-manager")) {
			t.Errorf("%+v, want it skipped, with the expected users", f)
		}
	}
	ctx, core := t.Context(), d.cluster.Client(t).CoreV1().Namespaces()
	if _, err := d.cluster.BoroughClient(t).TenancyV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foo"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foo"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := core.Delete(ctx, "foo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, d.kubeconfig, map[string]want{"namespace controller": {
		`the namespace foo of the cluster stays Terminating: the cluster's namespace controller authenticates as the user "admin", which --cluster-namespace-controllers does not name`,
		"--use-service-account-credentials",
	}})
}

// TestOldCluster runs doctor in a cluster of the previous version, and follows the
// advice.
func TestOldCluster(t *testing.T) {
	cluster := testcluster.New(t, testcluster.Options{
		Etcd:           testcluster.EtcdOptions{Unsafe: true},
		APIServerFlags: []string{"--emulated-version=1.35"},
	})
	kubeconfig, err := cluster.WriteKubeconfig("doctor", cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	// Borough is not deployed yet either.
	await(t, kubeconfig, map[string]want{
		"cluster version": {"the cluster is too old: Kubernetes v1.37.2, emulating 1.35, does not serve mutatingadmissionpolicies and mutatingadmissionpolicybindings of admissionregistration.k8s.io/v1 (served since Kubernetes 1.36)",
			"--disable-admission-plugins=MutatingAdmissionPolicy"},
		"flow control":      {"TokenReviews (workload-low)", "apply the manifests"},
		"controller":        {"no controller has ever created the Lease", "apply the manifests"},
		"controller rights": {"borough-controller-manager cannot get/list/watch/delete namespaces", "apply the manifests"},
		"deployment":        {"no Deployment in the namespace borough-system", "deploy Borough"},
		"service account":   {"does not exist", "kubectl create serviceaccount"},
		"delegator binding": {"cannot create", "clusterrolebinding"},
		"reader binding":    {"cannot get/list/watch", "rolebinding"},
		"rights":            {"cannot list/watch", "apply the manifests"},
		"APIService":        {"does not exist", "kubectl apply"},
	})
	t.Logf("output of doctor:\n%s", run(t, kubeconfig))

	d := deploy(t, cluster, "--disable-admission-plugins=MutatingAdmissionPolicy")
	if _, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "written"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	await(t, d.kubeconfig, nil)
}

// awaitTimeout is for several runs of doctor, each of which takes most of a minute if
// a server does not respond.
const awaitTimeout = 4 * time.Minute

// await waits until doctor reports exactly these faults and warnings, and logs them.
func await(t *testing.T, kubeconfig string, faults map[string]want) {
	t.Helper()
	var last []finding
	err := poll.Until(context.Background(), awaitTimeout, func(context.Context) error {
		var found []string
		var problems []error
		last = findings(t, kubeconfig)
		for _, f := range last {
			if f.Status != "fault" && f.Status != "warning" {
				continue
			}
			found = append(found, f.Check)
			if w := faults[f.Check]; !strings.Contains(f.Message, w.message) || !strings.Contains(f.Fix, w.fix) || w == (want{}) {
				problems = append(problems, fmt.Errorf("got  %+v\nwant %+v", f, w))
			}
		}
		for check, w := range faults {
			if !slices.Contains(found, check) {
				problems = append(problems, fmt.Errorf("no fault of %s, want %+v", check, w))
			}
		}
		return errors.Join(problems...)
	})
	if err != nil {
		t.Fatal(err)
	}
	for check := range faults {
		i := slices.IndexFunc(last, func(f finding) bool { return f.Check == check })
		t.Logf("doctor found %+v", last[i])
	}
}
