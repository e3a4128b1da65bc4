// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFindingsOfEtcd has the findings of etcd.
func TestFindingsOfEtcd(t *testing.T) {
	testFindings(t, []findingsCase{
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
		{"member of etcd missing", func(_ *testing.T, c *fakeCluster) {
			c.answers[etcdPath] = fakeAnswer{body: appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{}}}}
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
			c.answers[etcdPath] = fakeAnswer{body: appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{}}}}
			c.pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node"}}
		}, map[string]want{"etcd members": {Fault, "server-0: not scheduled: no node", "kubectl describe pod"}, "pods": {Fault, "not scheduled", ""}, "server versions": {Skipped, "no server responded", ""}}},
		{"member of etcd on a node that is down", func(_ *testing.T, c *fakeCluster) {
			c.etcdMembers(1)
			c.deletedPod(true)
		}, map[string]want{"etcd members": {Fault, "etcd-0: its node node1 has not been ready for 1m", "kubectl delete node node1"}}},
		{"member of etcd that is restarted", func(_ *testing.T, c *fakeCluster) {
			c.etcdMembers(2)
			c.deletedPod(false)
		}, map[string]want{"etcd members": {Fault, "1 of 2 members exist", "kubectl describe statefulset"}}},
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
		{"etcd certificates that the controller renews", func(t *testing.T, c *fakeCluster) {
			c.etcdIssuer(t, time.Now(), time.Now())
		}, nil},
		{"etcd certificates that the controller does not renew", func(t *testing.T, c *fakeCluster) {
			c.etcdIssuer(t, time.Now(), time.Now().Add(-45*time.Minute))
		}, map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-client is not renewed, and expires at", "check kubectl logs deployment/controller"}}},
		{"etcd certificates that the controller will renew soon", func(t *testing.T, c *fakeCluster) {
			c.etcdIssuer(t, time.Now(), time.Now().Add(-38*time.Minute))
		}, nil},
		{"etcd certificates that are renewed by others", func(t *testing.T, c *fakeCluster) { c.etcdCertificates(t, time.Now().Add(-45*time.Minute), "") }, nil},
		{"CA of etcd not renewed", func(t *testing.T, c *fakeCluster) {
			c.etcdIssuer(t, time.Now().Add(-45*time.Minute), time.Now())
		}, map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-ca is not renewed", "the controller issues them"}}},
		{"CA of etcd missing", func(t *testing.T, c *fakeCluster) {
			c.etcdIssuer(t, time.Now(), time.Now())
			delete(c.answers, secretsPath+"etcd-ca")
		}, map[string]want{"etcd certificates": {Fault, "the Secret etcd-ca does not exist", "apply the manifests"}}},
		{"CA of etcd empty", func(t *testing.T, c *fakeCluster) {
			c.etcdIssuer(t, time.Now(), time.Now())
			c.answers[secretsPath+"etcd-ca"] = fakeAnswer{body: corev1.Secret{}}
		}, map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-ca does not exist yet", "the controller issues them"}}},
		{"etcd certificate of another CA", func(t *testing.T, c *fakeCluster) { c.etcdCertificates(t, time.Now(), "other") },
			map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-member does not verify with the CA in the same Secret", "renew"}}},
		{"own etcd with another CA for clients", func(t *testing.T, c *fakeCluster) { c.ownEtcd(t, time.Now()) }, nil},
		{"certificate for own etcd expired", func(t *testing.T, c *fakeCluster) { c.ownEtcd(t, time.Now().Add(-2*time.Hour)) },
			map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-client is valid only from", "renew"}}},
		{"user cannot read Secrets of etcd", func(t *testing.T, c *fakeCluster) {
			c.etcdCertificates(t, time.Now(), "")
			c.answers[secretsPath+"etcd-member"] = failure(403, "no")
		}, map[string]want{"etcd certificates": {Skipped, "cannot read the Secret borough-system/etcd-member", ""}}},
		{"user cannot read the Secret of the CA of etcd, and a certificate expired", func(t *testing.T, c *fakeCluster) {
			c.etcdIssuer(t, time.Now(), time.Now().Add(-2*time.Hour))
			c.answers[secretsPath+"etcd-ca"] = failure(403, "no")
		}, map[string]want{"etcd certificates": {Fault, "the certificate in the Secret etcd-client is valid only from", "the controller issues them"}}},
	})
}
