// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/borough-io/borough/pkg/certificates"
)

// validity is that of all certificates and tokens. Tests of rotation make their
// own.
const validity = 24 * time.Hour

// CA is a certificate authority.
type CA struct {
	CertPEM []byte

	pair certificates.Pair
}

// NewCA makes a certificate authority with a new key.
func NewCA(name string) (*CA, error) {
	now := time.Now()
	pair, err := certificates.NewCA(name, now, now.Add(validity))
	if err != nil {
		return nil, err
	}
	cert, _, err := pair.EncodePEM()
	return &CA{cert, pair}, err
}

// NewCAForTest calls NewCA and fails the test on an error.
func NewCAForTest(t testing.TB, name string) *CA {
	t.Helper()
	ca, err := NewCA(name)
	if err != nil {
		t.Fatalf("make the CA %s: %v", name, err)
	}
	return ca
}

// Issue makes a certificate for the subject and returns it and its key in PEM.
// It is a client certificate and, with hosts (names and addresses), also a
// serving certificate.
func (ca *CA) Issue(subject pkix.Name, hosts ...string) (cert, key []byte, err error) {
	template := certificates.Client(subject)
	if len(hosts) > 0 {
		template = certificates.Server(subject.CommonName, hosts)
		template.Subject = subject
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	now := time.Now()
	pair, err := ca.pair.Issue(template, now, now.Add(validity))
	if err != nil {
		return nil, nil, err
	}
	return pair.EncodePEM()
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
	key, err := keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		p.err = fmt.Errorf("encode the key %s: %w", name, err)
		return
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		p.err = fmt.Errorf("encode the public key %s: %w", name, err)
		return
	}
	p.write(name+".key", key)
	p.write(name+".pub", pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: public}))
}
