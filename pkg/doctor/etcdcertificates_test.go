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

const secretsPath = "/api/v1/namespaces/borough-system/secrets/"

// etcdCertificates adds an etcd of one member to the cluster, whose certificates are
// issued at that time and are valid for an hour. The certificate of the member is from
// another CA if it has a name.
func (c *fakeCluster) etcdCertificates(t *testing.T, issued time.Time, memberCA string) {
	mount := func(spec *corev1.PodSpec, secret string) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: secret, MountPath: "/etcd"})
	}
	c.args("--etcd-certfile=/etcd/tls.crt", "--etcd-cafile=/etcd/ca.crt")
	mount(&c.deployment.Spec.Template.Spec, "etcd-client")
	member := corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--cert-file=/etcd/tls.crt", "--trusted-ca-file=/etcd/ca.crt"}}}}
	mount(&member, "etcd-member")
	set := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: etcdName}}
	set.Spec.Replicas, set.Spec.Selector = new(int32(1)), &metav1.LabelSelector{}
	set.Spec.Template.Spec = member
	c.answers[etcdPath] = fakeAnswer{body: set}

	ca := newTestCA(t, "etcd", issued)
	signer := ca
	if memberCA != "" {
		signer = newTestCA(t, memberCA, issued)
	}
	c.answers[secretsPath+"etcd-client"] = fakeAnswer{body: corev1.Secret{Data: map[string][]byte{"ca.crt": ca.pem(), "tls.crt": ca.issue(t, "client", issued)}}}
	c.answers[secretsPath+"etcd-member"] = fakeAnswer{body: corev1.Secret{Data: map[string][]byte{"ca.crt": ca.pem(), "tls.crt": signer.issue(t, "member", issued)}}}
}

// etcdIssuer adds the etcd of etcdCertificates, and a controller that issues its
// certificates. The CA is issued at another time than the others.
func (c *fakeCluster) etcdIssuer(t *testing.T, caIssued, issued time.Time) {
	c.etcdCertificates(t, issued, "")
	c.controller("--etcd-ca-secret=borough-system/etcd-ca")
	c.answers[secretsPath+"etcd-ca"] = fakeAnswer{body: corev1.Secret{Data: map[string][]byte{"tls.crt": newTestCA(t, "etcd", caIssued).pem()}}}
}

// ownEtcd gives the server a certificate for an etcd that is not in the manifests. The CA
// in the Secret is that of the members; that of clients is another one.
func (c *fakeCluster) ownEtcd(t *testing.T, issued time.Time) {
	c.etcdCertificates(t, issued, "")
	delete(c.answers, etcdPath)
	members, clients := newTestCA(t, "members", issued), newTestCA(t, "clients", issued)
	c.answers[secretsPath+"etcd-client"] = fakeAnswer{body: corev1.Secret{Data: map[string][]byte{"ca.crt": members.pem(), "tls.crt": clients.issue(t, "client", issued)}}}
}
