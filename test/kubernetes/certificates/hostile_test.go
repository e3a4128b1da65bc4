// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/borough-io/borough/test/certs"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// hostileContents are what a user who may write the Secret, but not the APIService,
// could write into it.
var hostileContents = map[string]func(t *testing.T) map[string][]byte{
	"a pair for clients": forged(func(_, cert *x509.Certificate) {
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}),
	"a CA that excludes the Service": forged(func(ca, _ *x509.Certificate) { ca.ExcludedDNSDomains = []string{"svc"} }),
	"a CA of ten years":              forged(func(ca, _ *x509.Certificate) { ca.NotAfter = ca.NotBefore.AddDate(10, 0, 0) }),
	"a pair of the right lifetime":   forged(func(_, _ *x509.Certificate) {}),
	"300 CAs":                        func(t *testing.T) map[string][]byte { return map[string][]byte{"ca.crt": foreignCAs(t, 300)} },
}

// forged returns what forge returns when it is called: the lifetime is short.
func forged(change func(ca, cert *x509.Certificate)) func(t *testing.T) map[string][]byte {
	return func(t *testing.T) map[string][]byte {
		t.Helper()
		return forge(t, change)
	}
}

// replaceSecret replaces keys of the Secret.
func (d *deployment) replaceSecret(t *testing.T, content map[string][]byte) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": content})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.client.CoreV1().Secrets(testcluster.SystemNamespace).Patch(t.Context(), certSecret, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// forge returns the content of a Secret with a pair for the Service. It is valid for the
// lifetime of the servers' certificates, unless change changes the templates.
func forge(t *testing.T, change func(ca, cert *x509.Certificate)) map[string][]byte {
	t.Helper()
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "forged"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: ca.Subject, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{serviceHost, serviceHost + ".cluster.local"},
	}
	change(ca, cert)
	signedCA, caKey := certs.Sign(t, ca, nil, nil)
	signed, key := certs.Sign(t, cert, signedCA, caKey)
	certPEM, err := certutil.EncodeCertificates(signed, signedCA)
	if err != nil {
		t.Fatal(err)
	}
	caPEM, err := certutil.EncodeCertificates(signedCA)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM, "ca.crt": caPEM}
}

// foreignCAs returns CAs that no server has created.
func foreignCAs(t *testing.T, count int) []byte {
	t.Helper()
	var text bytes.Buffer
	for range count {
		text.Write(forge(t, func(_, _ *x509.Certificate) {})["ca.crt"])
	}
	return text.Bytes()
}
