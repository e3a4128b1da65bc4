// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is that of all certificates and tokens. Tests of rotation make their
// own.
const validity = 24 * time.Hour

// CA is a certificate authority.
type CA struct {
	CertPEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a certificate authority with a new key.
func NewCA(name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	template := newTemplate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse the certificate of %s: %w", name, err)
	}
	return &CA{encodePEM("CERTIFICATE", der), cert, key}, nil
}

// Issue makes a certificate for the subject and returns it and its key in PEM.
// It is a client certificate and, with hosts (names and addresses), also a
// serving certificate.
func (ca *CA) Issue(subject pkix.Name, hosts ...string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of %s: %w", subject.CommonName, err)
	}
	template := newTemplate(subject)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, private.Public(), ca.key)
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate of %s: %w", subject.CommonName, err)
	}
	key, err = encodeKey(private)
	return encodePEM("CERTIFICATE", der), key, err
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(validity),
	}
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return encodePEM("PRIVATE KEY", der), nil
}

// pki is a directory of certificates and keys. It keeps the first error, after
// which its methods do nothing.
type pki struct {
	dir string
	err error
}

// file returns the path of a file in the directory.
func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) write(name string, data []byte) {
	if p.err != nil {
		return
	}
	if p.err = os.MkdirAll(p.dir, 0o700); p.err == nil {
		p.err = os.WriteFile(p.file(name), data, 0o600)
	}
}

// newCA makes name.crt. The key stays in this process.
func (p *pki) newCA(name string) *CA {
	if p.err != nil {
		return nil
	}
	var ca *CA
	if ca, p.err = NewCA(name); p.err == nil {
		p.write(name+".crt", ca.CertPEM)
	}
	return ca
}

// issue makes name.crt and name.key.
func (p *pki) issue(ca *CA, name string, subject pkix.Name, hosts ...string) {
	if p.err != nil {
		return
	}
	var cert, key []byte
	if cert, key, p.err = ca.Issue(subject, hosts...); p.err == nil {
		p.write(name+".crt", cert)
		p.write(name+".key", key)
	}
}

// newKeyPair makes name.key and name.pub.
func (p *pki) newKeyPair(name string) {
	if p.err != nil {
		return
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.err = fmt.Errorf("make the key %s: %w", name, err)
		return
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		p.err = fmt.Errorf("encode the key %s: %w", name, err)
		return
	}
	var data []byte
	if data, p.err = encodeKey(private); p.err == nil {
		p.write(name+".key", data)
		p.write(name+".pub", encodePEM("PUBLIC KEY", public))
	}
}
