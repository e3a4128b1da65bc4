// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
)

// TestFindingsOfCluster has the findings of what the cluster serves, how it forwards requests, and its clocks.
func TestFindingsOfCluster(t *testing.T) {
	const managed = "--serving-cert-secret=borough-system/borough-apiserver-tls"
	const anonymousForbidden = `namespaces is forbidden: User "system:anonymous" cannot get path "/apis"`
	testFindings(t, []findingsCase{
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
	})
}
