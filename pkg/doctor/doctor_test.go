// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

func TestNoFaults(t *testing.T) {
	for check, f := range newFakeCluster(t).examine(t) {
		if f.Status != OK {
			t.Errorf("%s: %+v", check, f)
		}
	}
}

// TestFindings makes one change to the cluster in each case. All checks that are not
// in want are ok.
func TestFindings(t *testing.T) {
	type want struct {
		status       Status
		message, fix string // parts
	}
	const managed = "--serving-cert-secret=borough-system/borough-apiserver-tls"
	const anonymousForbidden = `namespaces is forbidden: User "system:anonymous" cannot get path "/apis"`
	for _, tc := range []struct {
		name string
		do   func(*testing.T, *fakeCluster)
		want map[string]want
	}{
		{"invalid credentials", func(_ *testing.T, c *fakeCluster) { c.answers["/version"] = failure(401, "Unauthorized") },
			map[string]want{"cluster": {Fault, "rejects the credentials", "log in again"}, "*": {Skipped, `needs the check "cluster"`, ""}}},
		{"not Kubernetes", func(_ *testing.T, c *fakeCluster) { c.answers["/version"] = fakeAnswer{body: "<html>"} },
			map[string]want{"cluster": {Fault, "is not a Kubernetes API server", "kubeconfig"}, "*": {Skipped, `"cluster"`, ""}}},
		{"a standalone server", func(_ *testing.T, c *fakeCluster) {
			c.answers["/version"] = fakeAnswer{body: version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3+borough-v0.1.0"}}
		}, map[string]want{"cluster": {Fault, "is a standalone server of Borough", "/readyz?verbose"}, "*": {Skipped, `"cluster"`, ""}}},

		{"Kubernetes 1.35", func(_ *testing.T, c *fakeCluster) {
			c.answers[admissionPath] = fakeAnswer{body: resources("validatingadmissionpolicies", "validatingadmissionpolicybindings")}
		}, map[string]want{"cluster version": {Fault, "does not serve mutatingadmissionpolicies and mutatingadmissionpolicybindings of admissionregistration.k8s.io/v1",
			"upgrade the cluster to Kubernetes 1.36, or add --disable-admission-plugins=MutatingAdmissionPolicy"}}},
		{"Kubernetes 1.28", func(_ *testing.T, c *fakeCluster) {
			c.answers[admissionPath] = fakeAnswer{body: resources("validatingwebhookconfigurations")}
			delete(c.answers, flowControlPath)
		}, map[string]want{"cluster version": {Fault, "flowschemas",
			"--enable-priority-and-fairness=false --disable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy"}}},
		{"Kubernetes 1.28 with all turned off", func(_ *testing.T, c *fakeCluster) {
			delete(c.answers, admissionPath)
			delete(c.answers, flowControlPath)
			c.args("--enable-priority-and-fairness=f", "--disable-admission-plugins", "ValidatingAdmissionPolicy,MutatingAdmissionPolicy")
			c.denied["list flowschemas"], c.denied["watch mutatingadmissionpolicies"] = true, true
		}, nil},

		{"another namespace", func(_ *testing.T, c *fakeCluster) { c.apiService.Spec.Service.Namespace = "elsewhere" }, map[string]want{
			"APIService":           {Fault, "Service elsewhere/borough-apiserver, which is not in the namespace borough-system", "--namespace=elsewhere"},
			"APIService available": {Skipped, "", ""}, "caBundle": {Skipped, "", ""}, "caBundle policy": {Skipped, "", ""}, "front-proxy headers": {Skipped, "", ""}, "etcd": {Skipped, "", ""}}},
		{"no Deployment", func(_ *testing.T, c *fakeCluster) { c.deployment.Spec.Template.Spec.ServiceAccountName = "other" }, map[string]want{
			"deployment": {Fault, "no Deployment", "--service-account"}, "pods": {Skipped, `"deployment"`, ""}, "namespace controller": {Skipped, `"deployment"`, ""}, "etcd certificates": {Skipped, `"deployment"`, ""}}},
		{"no service account", func(_ *testing.T, c *fakeCluster) { delete(c.answers, accountPath) },
			map[string]want{"service account": {Fault, "does not exist", "kubectl create serviceaccount borough-apiserver"}}},
		{"rights", func(_ *testing.T, c *fakeCluster) {
			c.denied["create tokenreviews"], c.denied["watch configmaps"], c.denied["patch flowschemas"] = true, true, true
		}, map[string]want{
			"delegator binding": {Fault, "cannot create tokenreviews of authentication.k8s.io", "clusterrolebinding"},
			"reader binding":    {Fault, "watch configmaps extension-apiserver-authentication in kube-system", "rolebinding"},
			"rights":            {Fault, "patch flowschemas/status of flowcontrol.apiserver.k8s.io", "apply the manifests"}}},
		{"cannot review access", func(_ *testing.T, c *fakeCluster) { c.answers[subjectReviewPath] = failure(403, "no") }, map[string]want{
			"delegator binding": {Skipped, "cannot check the rights", ""}, "reader binding": {Skipped, "", ""}, "rights": {Skipped, "", ""}, "controller rights": {Skipped, "", ""}}},

		{"no conditions", func(_ *testing.T, c *fakeCluster) { c.apiService.Status.Conditions = nil }, map[string]want{
			"APIService available": {Fault, "has not checked", "run doctor again"}, "front-proxy headers": {Skipped, "", ""}, "etcd": {Skipped, "", ""}}},
		{"server does not authenticate the aggregator", func(_ *testing.T, c *fakeCluster) {
			c.unavailable("FailedDiscoveryCheck", "failing or missing response from https://10.0.0.9:443/apis/x: bad status from https://10.0.0.9:443/apis/x: 401")
		}, map[string]want{
			"APIService available": {Fault, "401", "see the check front-proxy headers"},
			"front-proxy headers":  {Fault, "does not authenticate kube-apiserver", "--proxy-client-cert-file"}, "etcd": {Skipped, "", ""}}},
		{"anonymous", func(_ *testing.T, c *fakeCluster) { c.answers[groupPath] = failure(403, anonymousForbidden) }, map[string]want{
			"front-proxy headers": {Fault, "requests of alice arrive as requests of system:anonymous", "--proxy-client-cert-file"}, "etcd": {Skipped, "", ""}}},
		{"user of the front proxy", func(_ *testing.T, c *fakeCluster) {
			c.answers[groupPath] = failure(403, `User "front-proxy-client" cannot get`)
			c.args("--requestheader-allowed-names=x")
		}, map[string]want{
			"front-proxy headers": {Fault, "as requests of front-proxy-client", "remove --requestheader-allowed-names"}, "etcd": {Skipped, "", ""}}},
		{"user cannot discover", func(_ *testing.T, c *fakeCluster) { c.answers[groupPath] = failure(403, `User "alice" cannot get`) }, map[string]want{
			"front-proxy headers": {Skipped, "alice cannot discover", ""}, "etcd": {Skipped, "", ""}}},
		{"discovery fails", func(_ *testing.T, c *fakeCluster) {
			c.answers[groupPath] = failure(500, "subjectaccessreviews is forbidden")
		}, map[string]want{"front-proxy headers": {Fault, "500: subjectaccessreviews", "delegator binding"}, "etcd": {Skipped, "", ""}}},
		{"discovery while the server is busy", func(_ *testing.T, c *fakeCluster) {
			c.answers[groupPath] = fakeAnswer{status: 429, body: "Too many requests, please try again later.\n"}
		}, map[string]want{"front-proxy headers": {Skipped, "the server is busy: 429", ""}, "etcd": {Skipped, "", ""}}},
		{"certificate rejected after the condition was set", func(_ *testing.T, c *fakeCluster) {
			c.answers[groupPath] = fakeAnswer{status: 503, body: "error trying to reach service: tls: failed to verify certificate: x509: certificate signed by unknown authority\n"}
		}, map[string]want{"front-proxy headers": {Fault, "503: error trying", "see the checks caBundle"}, "etcd": {Skipped, "", ""}}},
		{"no header CA", func(_ *testing.T, c *fakeCluster) { c.answers[configPath] = fakeAnswer{body: corev1.ConfigMap{}} },
			map[string]want{"front-proxy configuration": {Fault, "has no requestheader-client-ca-file", "--requestheader-username-headers"}}},
		{"no user headers", func(_ *testing.T, c *fakeCluster) {
			config := c.answers[configPath].body.(corev1.ConfigMap)
			config.Data["requestheader-username-headers"] = "[]"
		}, map[string]want{"front-proxy configuration": {Fault, "names no headers in requestheader-username-headers", "kube-apiserver"}}},
		{"no ConfigMap", func(_ *testing.T, c *fakeCluster) { delete(c.answers, configPath) },
			map[string]want{"front-proxy configuration": {Fault, "does not exist", "--client-ca-file"}}},

		{"etcd down", func(_ *testing.T, c *fakeCluster) {
			c.answers[listPath] = failure(504, "request did not complete")
			c.answers[readyzPath] = fakeAnswer{status: 500, body: "[+]ping ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\nreadyz check failed\n"}
		}, map[string]want{"etcd": {Fault, "504", "member of etcd"}, "pods": {Fault, "server-0: not ready, failed checks: etcd, etcd-readiness", "member of etcd"}}},
		{"server that cannot authenticate kube-apiserver yet", func(_ *testing.T, c *fakeCluster) {
			c.answers[readyzPath] = fakeAnswer{status: 500, body: "[+]ping ok\n[-]front-proxy-ca failed: reason withheld\nreadyz check failed\n"}
		}, map[string]want{"pods": {Fault, "server-0: not ready, failed checks: front-proxy-ca", "reader binding and front-proxy configuration"}}},
		{"etcd never available", func(_ *testing.T, c *fakeCluster) { c.answers[listPath] = failure(429, "storage is (re)initializing") },
			map[string]want{"etcd": {Fault, "429", "member of etcd"}}},
		{"busy", func(_ *testing.T, c *fakeCluster) {
			c.answers[listPath] = fakeAnswer{status: 429, body: "Too many requests, please try again later.\n"}
		},
			map[string]want{"etcd": {Skipped, "busy", ""}}},
		{"one of two servers unreachable", func(_ *testing.T, c *fakeCluster) {
			c.answers[listPath] = fakeAnswer{status: 503, body: "error trying to reach service: dial tcp 192.0.2.1:6443: connect: no route to host\n"}
		}, map[string]want{"etcd": {Fault, "may not reach all servers: 503: error trying to reach service", "see the checks pods and APIService available"}}},
		{"user cannot list", func(_ *testing.T, c *fakeCluster) {
			c.answers[listPath] = failure(403, `namespaces.tenancy.borough.io is forbidden: User "alice" cannot list resource`)
		}, map[string]want{"etcd": {Skipped, "alice cannot list", ""}}},

		{"no pods", func(_ *testing.T, c *fakeCluster) { c.answers[podsPath] = fakeAnswer{body: corev1.PodList{}} },
			map[string]want{"pods": {Fault, "0 of 1 Pods of the Deployment server exist", "kubectl describe replicasets --namespace=borough-system"}}},
		{"scaled to 0", func(_ *testing.T, c *fakeCluster) {
			c.deployment.Spec.Replicas = ptr.To[int32](0)
			c.answers[podsPath] = fakeAnswer{body: corev1.PodList{}}
		}, map[string]want{"pods": {Skipped, "is scaled to 0", ""}}},
		{"pod missing", func(_ *testing.T, c *fakeCluster) {
			c.deployment.Spec.Replicas = ptr.To[int32](2)
			c.controller()
			c.answers[deploymentsPath].body.(appsv1.DeploymentList).Items[1].Spec.Replicas = ptr.To[int32](3)
		}, map[string]want{
			"pods":       {Fault, "1 of 2 Pods of the Deployment server exist", "kubectl describe replicasets"},
			"controller": {Fault, "controller-0 holds the Lease; not all Pods of the controller are ready: 1 of 3 Pods of the Deployment controller exist", "kubectl describe replicasets"}}},
		{"pod that crashes", func(_ *testing.T, c *fakeCluster) {
			list := c.answers[podsPath].body.(corev1.PodList)
			list.Items[0].Status.ContainerStatuses = []corev1.ContainerStatus{{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no\netcd"}},
			}}
		}, map[string]want{"pods": {Fault, "server-0: CrashLoopBackOff, ended with exit code 1 no etcd", "kubectl logs --previous server-0"}}},
		{"pod unreachable", func(_ *testing.T, c *fakeCluster) { c.answers[readyzPath] = failure(503, "dial tcp: timeout") },
			map[string]want{"pods": {Skipped, "1 of 1 could not be checked: 503: dial tcp: timeout", ""}}},

		{"pod not ready", func(_ *testing.T, c *fakeCluster) {
			c.pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
		}, map[string]want{"pods": {Fault, "server-0: not ready: ContainersNotReady", "kubectl logs server-0"}}},
		{"node down", func(_ *testing.T, c *fakeCluster) {
			c.pod().Spec.NodeName = "node1"
			c.answers[nodePath] = fakeAnswer{body: corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute)),
			}}}}}
		}, map[string]want{"pods": {Fault, "server-0: its node node1 has not been ready for 1m", "kubectl describe node node1"}}},
		{"pods that have ended", func(_ *testing.T, c *fakeCluster) {
			list := c.answers[podsPath].body.(corev1.PodList)
			for name, phase := range map[string]corev1.PodPhase{"evicted": corev1.PodFailed, "done": corev1.PodSucceeded} {
				list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase}})
			}
			c.answers[podsPath] = fakeAnswer{body: list}
			c.controller()
		}, nil},

		{"pod of the controller not ready", func(_ *testing.T, c *fakeCluster) {
			c.pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
			c.controller()
		}, map[string]want{
			"controller": {Fault, "controller-0 holds the Lease; not all Pods of the controller are ready: server-0: not ready", "kubectl logs server-0"},
			"pods":       {Fault, "", ""}}},
		{"no Lease", func(_ *testing.T, c *fakeCluster) { delete(c.answers, leasePath) }, map[string]want{
			"controller": {Fault, "has ever created the Lease borough-system/borough-controller-manager; no Deployment", "--controller-service-account"}}},
		{"no leader election", func(_ *testing.T, c *fakeCluster) {
			c.controller("--leader-elect=0")
			delete(c.answers, leasePath)
			c.denied["update leases"] = true
		}, nil},
		{"Lease expired", func(_ *testing.T, c *fakeCluster) {
			c.leads = false
			c.lease().Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Minute)))
		}, map[string]want{"controller": {Fault, "controller-0 holds the Lease borough-system/borough-controller-manager, but does not renew it", "apply the manifests"}}},
		{"Lease released", func(_ *testing.T, c *fakeCluster) { c.lease().Spec.HolderIdentity = nil },
			map[string]want{"controller": {Fault, "no controller holds the Lease", "apply the manifests"}}},
		{"controller without rights", func(_ *testing.T, c *fakeCluster) {
			c.denied["update namespaces"], c.denied["update leases"] = true, true
		},
			map[string]want{"controller rights": {Fault, "borough-controller-manager cannot update namespaces/status, namespaces/finalize of tenancy.borough.io, or update leases borough-controller-manager", "apply the manifests"}}},

		{"member of etcd missing", func(_ *testing.T, c *fakeCluster) {
			c.answers[etcdPath] = fakeAnswer{body: appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{}}}}
		}, map[string]want{"etcd members": {Fault, "1 of 3 members exist; without 2 members etcd accepts no writes", "kubectl describe statefulset"}}},
		{"etcd scaled to zero", func(_ *testing.T, c *fakeCluster) { c.etcdMembers(0, "--initial-cluster=m0=https://m0:2380") },
			map[string]want{"etcd members": {Fault, "has 0 replicas instead of 1", "kubectl scale statefulset borough-etcd --replicas=1"}}},
		{"etcd scaled down", func(_ *testing.T, c *fakeCluster) {
			c.etcdMembers(1, "--initial-cluster=m0=https://m0:2380,m1=https://m1:2380,m2=https://m2:2380")
		}, map[string]want{"etcd members": {Fault, "has 1 replicas instead of 3", "kubectl scale statefulset borough-etcd --replicas=3"}}},
		{"etcd full", func(_ *testing.T, c *fakeCluster) {
			c.etcdMembers(1, "--initial-cluster=m0=https://m0:2380")
			c.answers[healthPath] = fakeAnswer{status: 503, body: `{"health":"false","reason":"ALARM NOSPACE"}`}
		}, map[string]want{"etcd members": {Fault, "all 1 members are ready, but etcd has the alarm NOSPACE", "writes fail with 507"}}},
		{"etcd healthy", func(_ *testing.T, c *fakeCluster) {
			c.etcdMembers(1, "--initial-cluster=m0=https://m0:2380")
			c.answers[healthPath] = fakeAnswer{body: `{"health":"true","reason":""}`}
		}, nil},
		{"member of etcd pending", func(_ *testing.T, c *fakeCluster) {
			c.answers[etcdPath] = fakeAnswer{body: appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{}}}}
			c.pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node"}}
		}, map[string]want{"etcd members": {Fault, "server-0: not scheduled: no node", "kubectl describe pod"}, "pods": {Fault, "not scheduled", ""}}},

		{"purge rejected", func(_ *testing.T, c *fakeCluster) {
			list := c.answers[namespacesPath].body.(corev1.NamespaceList)
			list.Items[0].Name = "foo"
			list.Items[0].Status.Conditions = []corev1.NamespaceCondition{{
				Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionTrue,
				Message: `Failed to delete all resource types, 1 remaining: pods.tenancy.borough.io is forbidden: the namespace controller of the cluster, as user "a \"b\"", may not purge the tenancy.borough.io Namespace "foo"`,
			}}
		}, map[string]want{"namespace controller": {Fault, `the namespace foo of the cluster stays Terminating: the cluster's namespace controller authenticates as the user "a \"b\""`, "--use-service-account-credentials"}}},
		{"purge rejected earlier", func(_ *testing.T, c *fakeCluster) {
			list := c.answers[namespacesPath].body.(corev1.NamespaceList)
			list.Items[0].Status.Conditions = []corev1.NamespaceCondition{{
				Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Message: `the namespace controller of the cluster, as user "a", may not purge`,
			}}
		}, nil},
		{"controllers without service accounts", func(_ *testing.T, c *fakeCluster) { delete(c.answers, controllerPath) },
			map[string]want{"namespace controller": {Skipped, "system:serviceaccount:kube-system:namespace-controller or system:kube-controller-manager", ""}}},
		{"another controller named", func(_ *testing.T, c *fakeCluster) { c.args("--cluster-namespace-controllers=a,b") },
			map[string]want{"namespace controller": {Fault, "does not name system:serviceaccount:kube-system:namespace-controller", "remove the flag"}}},
		{"no controller named", func(_ *testing.T, c *fakeCluster) { c.args("--cluster-namespace-controllers=") },
			map[string]want{"namespace controller": {Fault, "does not name", "remove the flag"}}},
		{"controllers named", func(_ *testing.T, c *fakeCluster) {
			c.args("--cluster-namespace-controllers=a", "--cluster-namespace-controllers", "system:serviceaccount:kube-system:namespace-controller")
		}, nil},
		{"user cannot list namespaces of the cluster", func(_ *testing.T, c *fakeCluster) { c.answers[namespacesPath] = failure(403, "no") },
			map[string]want{"namespace controller": {Skipped, "cannot list namespaces of the cluster", ""}}},
		{"user cannot read service accounts", func(_ *testing.T, c *fakeCluster) { c.answers[controllerPath] = failure(403, "no") },
			map[string]want{"namespace controller": {Skipped, "cannot read the service account", ""}}},

		{"parameters in the namespace of the request", func(_ *testing.T, c *fakeCluster) {
			policies := &admissionv1.ValidatingAdmissionPolicyList{}
			bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
			for name, group := range map[string]string{"ours": "tenancy.borough.io", "all": "*", "other": "apps", "deployments": "*"} {
				policy := admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
				policy.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
				if name == "all" {
					policy.Spec.ParamKind.Kind = "Node"
				}
				rule := admissionv1.NamedRuleWithOperations{}
				rule.APIGroups, rule.Resources = []string{group}, []string{"pods", "pods/status"}
				if name == "deployments" {
					rule.Resources = []string{"deployments"}
				}
				policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}}
				policies.Items = append(policies.Items, policy)
				for _, namespace := range []string{"", "config"} {
					binding := admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "bind-" + namespace}}
					binding.Spec.PolicyName, binding.Spec.ParamRef = name, &admissionv1.ParamRef{Name: "p", Namespace: namespace}
					bindings.Items = append(bindings.Items, binding)
				}
			}
			c.answers[admissionPath+"/validatingadmissionpolicies"] = fakeAnswer{body: policies}
			c.answers[admissionPath+"/validatingadmissionpolicybindings"] = fakeAnswer{body: bindings}
			c.answers["/api/v1"] = fakeAnswer{body: metav1.APIResourceList{APIResources: []metav1.APIResource{
				{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "nodes", Kind: "Node"},
			}}}
		}, map[string]want{"admission policies": {Warning, "the name of the object's Namespace: bind- of the ValidatingAdmissionPolicy ours", "set spec.paramRef.namespace"}}},

		{"etcd certificates", func(t *testing.T, c *fakeCluster) { c.etcdCertificates(t, time.Now(), "") }, nil},
		{"etcd certificate not issued", func(t *testing.T, c *fakeCluster) {
			c.etcdCertificates(t, time.Now(), "")
			c.answers[secretsPath+"etcd-client"] = fakeAnswer{body: corev1.Secret{}}
		}, map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-client does not exist yet", "check its log"}}},
		{"etcd certificate missing", func(t *testing.T, c *fakeCluster) {
			c.etcdCertificates(t, time.Now(), "")
			c.answers[secretsPath+"etcd-member"] = failure(404, "no")
		}, map[string]want{"etcd certificates": {Fault, "the Secret etcd-member does not exist", "renew"}}},
		{"etcd certificates expired", func(t *testing.T, c *fakeCluster) { c.etcdCertificates(t, time.Now().Add(-2*time.Hour), "") },
			map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-client is valid only from", "renew"}}},
		{"etcd certificate of another CA", func(t *testing.T, c *fakeCluster) { c.etcdCertificates(t, time.Now(), "other") },
			map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-member does not verify with the CA in the same Secret", "renew"}}},
		{"own etcd with another CA for clients", func(t *testing.T, c *fakeCluster) { c.ownEtcd(t, time.Now()) }, nil},
		{"certificate for own etcd expired", func(t *testing.T, c *fakeCluster) { c.ownEtcd(t, time.Now().Add(-2*time.Hour)) },
			map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-client is valid only from", "renew"}}},
		{"user cannot read Secrets of etcd", func(t *testing.T, c *fakeCluster) {
			c.etcdCertificates(t, time.Now(), "")
			c.answers[secretsPath+"etcd-member"] = failure(403, "no")
		}, map[string]want{"etcd certificates": {Skipped, "cannot read the Secret borough-system/etcd-member", ""}}},

		{"policy for the caBundle", func(_ *testing.T, c *fakeCluster) { c.args(managed) }, nil},
		{"no policy for the caBundle", func(_ *testing.T, c *fakeCluster) {
			c.args(managed)
			c.answers["PATCH "+apiServicePath] = fakeAnswer{body: c.apiService}
		}, map[string]want{"caBundle policy": {Fault, serverUser + " can change all fields of the APIService", "apply the manifests"}}},
		{"user cannot impersonate", func(_ *testing.T, c *fakeCluster) {
			c.args(managed)
			c.answers["PATCH "+apiServicePath] = failure(403, `serviceaccounts "borough-apiserver" is forbidden: User "alice" cannot impersonate`)
		}, map[string]want{"caBundle policy": {Skipped, "alice cannot impersonate", ""}}},
		{"server cannot patch", func(_ *testing.T, c *fakeCluster) {
			c.args(managed)
			c.answers["PATCH "+apiServicePath] = failure(403, fmt.Sprintf("apiservices is forbidden: User %q cannot patch", serverUser))
		}, nil},
		{"caBundle policy unknown", func(_ *testing.T, c *fakeCluster) {
			c.args(managed)
			c.answers["PATCH "+apiServicePath] = failure(500, "no")
		}, map[string]want{"caBundle policy": {Skipped, "500: no", ""}}},

		{"the clock of kube-apiserver", func(_ *testing.T, c *fakeCluster) { c.clock = 5 * time.Minute },
			map[string]want{"clocks": {Fault, "the clock of this machine is ", "the clock of this machine"}}},
		{"the server's clock", func(_ *testing.T, c *fakeCluster) {
			c.answers[groupPath] = fakeAnswer{body: resources("namespaces"), clock: -2 * time.Minute}
		}, map[string]want{"clocks": {Fault, "the clock of the server is", "nodes of the cluster"}}},
		{"a pod's clock", func(_ *testing.T, c *fakeCluster) {
			c.answers[readyzPath] = fakeAnswer{body: "readyz check passed", clock: time.Hour}
		}, map[string]want{"clocks": {Fault, "the clock of pod server-0 is ", "NTP"}}},
		{"a little skew", func(_ *testing.T, c *fakeCluster) { c.clock = 30 * time.Second }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t)
			tc.do(t, cluster)
			for check, got := range cluster.examine(t) {
				want, named := tc.want[check]
				if rest, all := tc.want["*"]; !named && all {
					want = rest
				} else if !named {
					want.status = OK
				}
				if got.Status != want.status || !strings.Contains(got.Message, want.message) || !strings.Contains(got.Fix, want.fix) {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			}
		})
	}
}

// TestRecheck changes the cluster while its checks are made for the first time.
func TestRecheck(t *testing.T) {
	noResponse := fakeAnswer{status: 503, body: "error trying to reach service: EOF"}
	for _, tc := range []struct {
		name   string
		change func(*fakeCluster)
		want   map[string]Status // of checks that are not ok
	}{
		{"the fault is over", func(c *fakeCluster) { c.answers[groupPath] = fakeAnswer{body: resources("namespaces")} }, nil},
		{"another fault hides it", func(c *fakeCluster) { c.unavailable("FailedDiscoveryCheck", "timeout") },
			map[string]Status{"APIService available": Fault, checkFrontProxy: Skipped, "etcd": Skipped}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := newFakeCluster(t)
			cluster.answers[groupPath] = noResponse
			change := sync.OnceFunc(func() { tc.change(cluster) })
			var mu sync.Mutex
			findings := examine(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				cluster.ServeHTTP(w, req)
				if req.URL.Path == groupPath {
					change()
				}
			}), time.Nanosecond)
			for check, got := range findings {
				want, named := tc.want[check]
				if !named {
					want = OK
				}
				if got.Status != want {
					t.Errorf("got %+v, want status %s", got, want)
				}
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	findings, err := Examine(t.Context(), &rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if Faults(findings) != 1 || findings[0].Status != Fault || !strings.Contains(findings[0].Message, "refused") {
		t.Errorf("got %+v, want one fault, of the check cluster", findings)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	defer server.Close()
	if findings, err := Examine(ctx, &rest.Config{Host: server.URL}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", findings, err)
	}
}
