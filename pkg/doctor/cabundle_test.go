// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/certs"
)

const served = "borough-apiserver.borough-system.svc"

func TestCABundle(t *testing.T) {
	now := time.Now()
	setBundle := func(pem string) func(*testing.T, *fakeCluster) {
		return func(_ *testing.T, c *fakeCluster) { c.apiService.Spec.CABundle = []byte(pem) }
	}
	// serve puts a certificate into the Secret, and its CA into caBundle.
	serve := func(name string, issuedAt time.Time) func(*testing.T, *fakeCluster) {
		return func(t *testing.T, c *fakeCluster) {
			ca := newTestCA(t, "ca", now)
			c.apiService.Spec.CABundle = ca.pem()
			c.answers[secretPath] = fakeAnswer{body: corev1.Secret{Data: map[string][]byte{"tls.crt": ca.issue(t, name, issuedAt)}}}
		}
	}
	for _, tc := range []struct {
		name         string
		do           func(*testing.T, *fakeCluster)
		status       Status
		message, fix string
	}{
		{"valid", serve(served, now), OK, "verifies the serving certificate in the Secret borough-system/borough-apiserver-tls", ""},
		{"insecure", func(_ *testing.T, c *fakeCluster) {
			c.apiService.Spec.CABundle, c.apiService.Spec.InsecureSkipTLSVerify = nil, true
		}, Fault, "insecureSkipTLSVerify is set", "remove insecureSkipTLSVerify; set caBundle"},
		{"empty", func(_ *testing.T, c *fakeCluster) {
			c.apiService.Spec.CABundle = nil
			c.unavailable("FailedDiscoveryCheck", "x509: certificate signed by unknown authority")
		}, Fault, "it is empty", "kubectl patch apiservice v1.tenancy.borough.io"},
		{"empty, trusted by system roots", setBundle(""), OK, "by its system roots", ""},
		{"not PEM", setBundle("garbage"), Fault, "PEM certificates", "set caBundle"},
		{"expired", func(t *testing.T, c *fakeCluster) {
			c.apiService.Spec.CABundle = newTestCA(t, "ca", now.Add(-2*time.Hour)).pem()
		}, Fault, "expired or not yet valid", "set caBundle"},
		{"expired by the clock of kube-apiserver", func(_ *testing.T, c *fakeCluster) { c.clock = 3 * time.Hour }, Fault, "expired or not yet valid", "set caBundle"},
		{"another CA of the same name", func(t *testing.T, c *fakeCluster) {
			c.apiService.Spec.CABundle = newTestCA(t, "ca", now).pem()
		},
			Fault, "in the Secret borough-system/borough-apiserver-tls is not signed by a CA in caBundle", "set caBundle"},
		{"another CA, cert-manager", func(t *testing.T, c *fakeCluster) {
			c.apiService.Spec.CABundle = newTestCA(t, "other", now).pem()
			c.apiService.Metadata.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "a/b"}
		}, Fault, "not signed", "cainjector"},
		{"another CA, managed by the server", func(t *testing.T, c *fakeCluster) {
			c.apiService.Spec.CABundle = newTestCA(t, "other", now).pem()
			c.args("--serving-cert-secret=borough-system/borough-apiserver-tls")
		}, Fault, "not signed", "the server sets caBundle itself"},
		{"rotation", func(t *testing.T, c *fakeCluster) {
			c.apiService.Spec.CABundle = append(newTestCA(t, "next", now).pem(), c.apiService.Spec.CABundle...)
		}, OK, "verifies the serving certificate", ""},
		{"wrong name", serve("other.svc", now), Fault, "not valid: x509", "renew the serving certificate for " + served},
		{"serving certificate expired", serve(served, now.Add(-2*time.Hour)), Fault, "is valid only from", "renew"},
		{"no Secret", func(_ *testing.T, c *fakeCluster) { delete(c.answers, secretPath) }, Fault, "does not exist", "create it"},
		{"no Secret yet", func(_ *testing.T, c *fakeCluster) {
			delete(c.answers, secretPath)
			c.args("--serving-cert-secret=borough-system/borough-apiserver-tls")
		}, Fault, "does not exist", "apply the manifests"},
		{"Secret empty", func(_ *testing.T, c *fakeCluster) {
			c.answers[secretPath] = fakeAnswer{body: corev1.Secret{}}
			c.args("--serving-cert-secret=borough-system/borough-apiserver-tls")
		}, Fault, "cannot be parsed", "check that the server runs, and its log"},
		{"Secret not readable", func(_ *testing.T, c *fakeCluster) { c.answers[secretPath] = failure(403, "no") }, OK, "cannot be compared", ""},
		{"no Secret named", func(_ *testing.T, c *fakeCluster) { c.deployment.Spec.Template.Spec.Containers[0].Args = nil }, OK, "not in a Secret", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t)
			tc.do(t, cluster)
			got := cluster.examine(t)["caBundle"]
			if got.Status != tc.status || !strings.Contains(got.Message, tc.message) || !strings.Contains(got.Fix, tc.fix) {
				t.Errorf("got %+v, want %s: %q, fix: %q", got, tc.status, tc.message, tc.fix)
			}
		})
	}
}

type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newTestCA(t *testing.T, name string, from time.Time) *testCA {
	t.Helper()
	ca := &testCA{cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	ca.cert, ca.key = ca.sign(t, ca.cert, from)
	return ca
}

func (ca *testCA) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

func (ca *testCA) issue(t *testing.T, name string, from time.Time) []byte {
	t.Helper()
	cert, _ := ca.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, from)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// sign creates a key and signs its certificate, which is valid for an hour, with the
// key of the CA or, if the CA has no key yet, with the new key.
func (ca *testCA) sign(t *testing.T, template *x509.Certificate, from time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	template.SerialNumber = big.NewInt(from.UnixNano())
	template.NotBefore, template.NotAfter = from.Add(-time.Minute), from.Add(time.Hour)
	if ca.key == nil {
		return certs.Sign(t, template, nil, nil)
	}
	return certs.Sign(t, template, ca.cert, ca.key)
}

func TestCertSecret(t *testing.T) {
	deployment := &deployment{
		container: corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b/"}}},
		pod: corev1.PodSpec{Volumes: []corev1.Volume{
			{Name: "a"},
			{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
		}},
	}
	for _, tc := range []struct {
		args           []string
		want           string
		managed, found bool
	}{
		{nil, "", false, false},
		{[]string{"--serving-cert-secret=x/y"}, "x/y tls.crt", true, true},
		{[]string{"--serving-cert-secret", "x/y"}, "x/y tls.crt", true, true},
		{[]string{"--tls-cert-file=/b/server.pem"}, "ns/s server.pem", false, true},
		{[]string{"--tls-cert-file=/a/tls.crt"}, "", false, false},
		{[]string{"--tls-cert-file=/elsewhere/tls.crt"}, "", false, false},
	} {
		deployment.container.Args = tc.args
		secret, key, managed, found := deployment.certSecret("ns")
		got := secret.String() + " " + key
		if found != tc.found || managed != tc.managed || found && got != tc.want {
			t.Errorf("%v: got %q, managed %v, found %v", tc.args, got, managed, found)
		}
	}
}

// TestCertSecretWithoutDeployment covers a Deployment that was not found.
func TestCertSecretWithoutDeployment(t *testing.T) {
	var none *deployment
	if _, _, _, found := none.certSecret(metav1.NamespaceDefault); found {
		t.Error("found a Secret")
	}
}
