// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFindingsOfWorkloads has the findings of the servers, the controllers and their rights.
func TestFindingsOfWorkloads(t *testing.T) {
	testFindings(t, []findingsCase{
		{"no Deployment", func(_ *testing.T, c *fakeCluster) { c.deployment.Spec.Template.Spec.ServiceAccountName = "other" }, map[string]want{
			"deployment": {Fault, "no Deployment", "--service-account"}, "pods": {Skipped, `"deployment"`, ""}, "server nodes": {Skipped, `"deployment"`, ""}, "server versions": {Skipped, `"deployment"`, ""}, "namespace controller": {Skipped, `"deployment"`, ""}, "etcd certificates": {Skipped, `"deployment"`, ""}}},
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
		{"no pods", func(_ *testing.T, c *fakeCluster) { c.answers[podsPath] = fakeAnswer{body: corev1.PodList{}} },
			map[string]want{"pods": {Fault, "0 of 1 Pods of the Deployment server exist", "kubectl describe replicasets --namespace=borough-system"}, "server nodes": {Skipped, "no Pods of the server", ""}, "server versions": {Skipped, "no server responded", ""}}},
		{"scaled to 0", func(_ *testing.T, c *fakeCluster) {
			c.deployment.Spec.Replicas = new(int32(0))
			c.answers[podsPath] = fakeAnswer{body: corev1.PodList{}}
		}, map[string]want{"pods": {Skipped, "is scaled to 0", ""}, "server nodes": {Skipped, "no Pods of the server", ""}, "server versions": {Skipped, "no server responded", ""}}},
		{"pod missing", func(_ *testing.T, c *fakeCluster) {
			c.deployment.Spec.Replicas = new(int32(2))
			c.controller()
			c.answers[deploymentsPath].body.(appsv1.DeploymentList).Items[1].Spec.Replicas = new(int32(3))
		}, map[string]want{
			"pods":       {Fault, "1 of 2 Pods of the Deployment server exist", "kubectl describe replicasets"},
			"controller": {Fault, "controller-0 holds the Lease; not all Pods of the controller are ready: 1 of 3 Pods of the Deployment controller exist", "kubectl describe replicasets"}}},
		{"pod that crashes", func(_ *testing.T, c *fakeCluster) {
			list := c.answers[podsPath].body.(corev1.PodList)
			list.Items[0].Status.ContainerStatuses = []corev1.ContainerStatus{{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no\netcd"}},
			}}
		}, map[string]want{"pods": {Fault, "server-0: CrashLoopBackOff, ended with exit code 1 no etcd", "kubectl logs --previous server-0"}, "server versions": {Skipped, "no server responded", ""}}},
		{"pod unreachable", func(_ *testing.T, c *fakeCluster) { c.answers[readyzPath] = failure(503, "dial tcp: timeout") },
			map[string]want{"pods": {Skipped, "1 of 1 could not be checked: 503: dial tcp: timeout", ""}, "server versions": {Skipped, "no server responded", ""}}},
		{"pod not ready", func(_ *testing.T, c *fakeCluster) {
			c.pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
		}, map[string]want{"pods": {Fault, "server-0: not ready: ContainersNotReady", "kubectl logs server-0"}}},
		{"node down", func(_ *testing.T, c *fakeCluster) {
			c.pod().Spec.NodeName = "node1"
			c.node(true)
		}, map[string]want{"pods": {Fault, "server-0: its node node1 has not been ready for 1m", "kubectl describe node node1"}, "server versions": {Skipped, "no server responded", ""}}},
		{"pod that was replaced, on a node that is down", func(_ *testing.T, c *fakeCluster) {
			c.deletedPod(true)
			c.controller()
		}, nil},
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
			c.lease().Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-time.Minute)))
		}, map[string]want{"controller": {Fault, "controller-0 holds the Lease borough-system/borough-controller-manager, but does not renew it", "apply the manifests"}}},
		{"Lease released", func(_ *testing.T, c *fakeCluster) { c.lease().Spec.HolderIdentity = nil },
			map[string]want{"controller": {Fault, "no controller holds the Lease", "apply the manifests"}}},
		{"controller without rights", func(_ *testing.T, c *fakeCluster) {
			c.denied["update namespaces"], c.denied["update leases"] = true, true
		},
			map[string]want{"controller rights": {Fault, "borough-controller-manager cannot update namespaces/status, namespaces/finalize of tenancy.borough.io, or update leases borough-controller-manager", "apply the manifests"}}},
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
	})
}
