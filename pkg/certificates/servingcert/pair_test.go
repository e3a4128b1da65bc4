// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/test/certs"
)

// forge creates a pair as policy.create does, but for what change does to the
// templates.
func forge(t *testing.T, now time.Time, lifetime time.Duration, change func(ca, cert *x509.Certificate)) *pair {
	t.Helper()
	from, until := now.Add(-certificates.ClockSkew), now.Add(lifetime)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "forged"}, NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	cert := certificates.Server("forged", hosts)
	cert.SerialNumber, cert.NotBefore, cert.NotAfter = big.NewInt(2), from, until
	change(ca, cert)
	signedCA, caKey := certs.Sign(t, ca, nil, nil)
	signed, key := certs.Sign(t, cert, signedCA, caKey)
	forged := &pair{cert: signed, ca: signedCA}
	var err error
	if forged.certPEM, forged.keyPEM, err = (certificates.Pair{Cert: signed, Key: key}).EncodePEM(signedCA); err != nil {
		t.Fatal(err)
	}
	return forged
}

func asCreated(_, _ *x509.Certificate) {}

// forgeries are pairs that kube-apiserver does not accept although it trusts their CA,
// or that are valid for too long, with the reason.
var forgeries = map[string]struct {
	change func(ca, cert *x509.Certificate)
	reason string
}{
	"for clients only": {func(_, cert *x509.Certificate) {
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}, "incompatible key usage"},
	"CA for clients only": {func(ca, _ *x509.Certificate) {
		ca.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}, "incompatible key usage"},
	"CA that excludes the Service": {func(ca, _ *x509.Certificate) {
		ca.ExcludedDNSDomains = []string{"svc"}
	}, "is excluded by constraint"},
	"CA for other names": {func(ca, _ *x509.Certificate) {
		ca.PermittedDNSDomains = []string{"example.com"}
	}, "is not permitted by any constraint"},
	"for another Service": {func(_, cert *x509.Certificate) {
		cert.DNSNames = []string{"other.borough-system.svc"}
	}, "not borough-apiserver.borough-system.svc"},
	"for one of the names": {func(_, cert *x509.Certificate) {
		cert.DNSNames = hosts[:1]
	}, "not borough-apiserver.borough-system.svc.cluster.local"},
	"name in the subject only": {func(_, cert *x509.Certificate) {
		cert.Subject.CommonName, cert.DNSNames = hosts[0], nil
	}, "relies on legacy Common Name field"},
	"no CA": {func(ca, _ *x509.Certificate) {
		ca.IsCA = false
	}, "cannot sign this kind of certificate"},
	"expired": {func(_, cert *x509.Certificate) {
		cert.NotBefore, cert.NotAfter = cert.NotBefore.Add(-time.Hour), cert.NotBefore.Add(time.Minute)
	}, "expired"},
	"not valid yet": {func(_, cert *x509.Certificate) {
		cert.NotBefore = cert.NotBefore.Add(time.Hour)
	}, "not yet valid"},
	"CA expired": {func(ca, _ *x509.Certificate) {
		ca.NotBefore, ca.NotAfter = ca.NotBefore.Add(-time.Hour), ca.NotBefore.Add(time.Minute)
	}, "expired"},
	"ten years": {func(ca, cert *x509.Certificate) {
		ca.NotAfter = ca.NotBefore.AddDate(10, 0, 0)
		cert.NotAfter = ca.NotAfter
	}, "longer than"},
	"CA of ten years": {func(ca, _ *x509.Certificate) {
		ca.NotAfter = ca.NotBefore.AddDate(10, 0, 0)
	}, "longer than"},
	"CA since ten years": {func(ca, _ *x509.Certificate) {
		ca.NotBefore = ca.NotBefore.AddDate(-10, 0, 0)
	}, "longer than"},
	"ten minutes too long": {func(ca, cert *x509.Certificate) {
		ca.NotAfter = ca.NotAfter.Add(10 * time.Minute)
		cert.NotAfter = ca.NotAfter
	}, "longer than"},
	"unknown critical extension": {func(_, cert *x509.Certificate) {
		cert.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3}, Critical: true, Value: []byte{5, 0}}}
	}, "unhandled critical extension"},
}

func TestRead(t *testing.T) {
	p := policy{hosts: hosts, lifetime: 100 * time.Hour}
	created, err := p.create(start)
	if err != nil {
		t.Fatal(err)
	}
	other, err := p.create(start)
	if err != nil {
		t.Fatal(err)
	}
	read := func(t *testing.T, certPEM, keyPEM []byte, trusted *x509.Certificate, reason string) {
		t.Helper()
		_, err := p.read(certPEM, keyPEM, []*x509.Certificate{other.ca, trusted}, start)
		if (err == nil) != (reason == "") || err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %q", err, reason)
		}
	}
	t.Run("created", func(t *testing.T) { read(t, created.certPEM, created.keyPEM, created.ca, "") })
	t.Run("as created", func(t *testing.T) {
		// Otherwise the forgeries would show nothing.
		same := forge(t, start, p.lifetime, asCreated)
		read(t, same.certPEM, same.keyPEM, same.ca, "")
	})
	for name, tc := range forgeries {
		t.Run(name, func(t *testing.T) {
			forged := forge(t, start, p.lifetime, tc.change)
			read(t, forged.certPEM, forged.keyPEM, forged.ca, tc.reason)
		})
	}
	t.Run("CA not trusted", func(t *testing.T) {
		read(t, created.certPEM, created.keyPEM, other.ca, "is not in the caBundle")
	})
	t.Run("another CA with the same name", func(t *testing.T) {
		twin := forge(t, start, p.lifetime, asCreated)
		read(t, twin.certPEM, twin.keyPEM, forge(t, start, p.lifetime, asCreated).ca, "is not in the caBundle")
	})
	t.Run("signed by another CA", func(t *testing.T) {
		mixed, err := certutil.EncodeCertificates(created.cert, other.ca)
		if err != nil {
			t.Fatal(err)
		}
		read(t, mixed, created.keyPEM, other.ca, "certificate signed by unknown authority")
	})
	t.Run("key of another", func(t *testing.T) {
		read(t, created.certPEM, other.keyPEM, created.ca, "private key does not match public key")
	})
	t.Run("no CA in the chain", func(t *testing.T) {
		read(t, created.certPEM[:strings.LastIndex(string(created.certPEM), "-----BEGIN")], created.keyPEM, created.ca, "there are 1 certificates")
	})
	for name, damage := range map[string]func([]byte) []byte{
		"half":    func(old []byte) []byte { return old[:len(old)/4] },
		"garbage": func([]byte) []byte { return []byte("garbage") },
		"none":    func([]byte) []byte { return nil },
	} {
		t.Run("certificate "+name, func(t *testing.T) {
			read(t, damage(created.certPEM), created.keyPEM, created.ca, "does not contain any valid")
		})
		t.Run("key "+name, func(t *testing.T) {
			read(t, created.certPEM, damage(created.keyPEM), created.ca, "failed to find any PEM data in key input")
		})
	}
}
