// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority is a CA.
type Authority struct {
	// File has the certificate, in PEM.
	File string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

// NewAuthority returns a new CA.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	cert, key := Sign(t, &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test-ca"},
		NotAfter:              time.Now().Add(time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, nil, nil)
	a := &Authority{cert: cert, key: key, dir: t.TempDir()}
	a.File = filepath.Join(a.dir, "ca.crt")
	if err := certutil.WriteCert(a.File, encode(t, cert)); err != nil {
		t.Fatal(err)
	}
	return a
}

// Server returns a certificate for a server on the local host, which is valid until then.
func (a *Authority) Server(t testing.TB, notAfter time.Time) tls.Certificate {
	t.Helper()
	cert, key := Sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "test-server"},
		NotAfter:     notAfter,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// Client writes a certificate for a client and its key, and returns the files.
func (a *Authority) Client(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	cert, key := Sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(3),
		Subject:      pkix.Name{CommonName: name},
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	if err := certutil.WriteCert(certFile, encode(t, cert)); err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err == nil {
		err = keyutil.WriteKey(keyFile, encoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

// encode returns the certificates in PEM.
func encode(t testing.TB, certs ...*x509.Certificate) []byte {
	t.Helper()
	encoded, err := certutil.EncodeCertificates(certs...)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
