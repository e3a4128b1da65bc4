// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates creates certificate authorities and the certificates that
// they sign, and keeps them in a directory. Package rotation keeps them in a
// Secret and renews them.
package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// ClockSkew is by how much the clock of a client may be behind: certificates are
// valid from that long before they are created.
const ClockSkew = 5 * time.Minute

// Pair is a certificate and its key, which is an ECDSA key on the curve P-256.
type Pair struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// NewCA creates a CA with a self-signed certificate that is valid until notAfter.
func NewCA(name string, now, notAfter time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-ClockSkew),
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	ca, err := issue(template, nil)
	if err != nil {
		return Pair{}, fmt.Errorf("create the CA %s: %w", name, err)
	}
	return ca, nil
}

// Issue returns a new key and a certificate for it, signed by the pair, which is a
// CA. The certificate is valid as long as the CA. The template has the subject, the names and the usages.
func (p Pair) Issue(template *x509.Certificate, now time.Time) (Pair, error) {
	issued := *template
	issued.NotBefore, issued.NotAfter = now.Add(-ClockSkew), p.Cert.NotAfter
	pair, err := issue(&issued, &p)
	if err != nil {
		return Pair{}, fmt.Errorf("create the certificate of %s: %w", template.Subject, err)
	}
	return pair, nil
}

// issue signs with the CA, or with the new key itself if there is none.
func issue(template *x509.Certificate, ca *Pair) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, fmt.Errorf("choose a serial number: %w", err)
	}
	if ca == nil {
		ca = &Pair{template, key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca.Cert, key.Public(), ca.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign: %w", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return Pair{}, fmt.Errorf("parse: %w", err)
	}
	return Pair{cert, key}, nil
}

// Client returns the template of a certificate for client authentication. The
// common name is the user, the organizations are its groups.
func Client(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		Subject:     subject,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// Server returns the template of a certificate for a server that clients reach by
// hosts, which are DNS names and IP addresses.
func Server(name string, hosts []string) *x509.Certificate {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

// EncodePEM returns the certificate, followed by those of chain, and the key.
func (p Pair) EncodePEM(chain ...*x509.Certificate) (certPEM, keyPEM []byte, err error) {
	certPEM, err = certutil.EncodeCertificates(append([]*x509.Certificate{p.Cert}, chain...)...)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a certificate: %w", err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(p.Key); err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return certPEM, keyPEM, nil
}

// errNotItsKey is returned for a key that does not belong to the certificate.
var errNotItsKey = errors.New("not the key of its certificate")

func parseKey(keyPEM []byte, cert *x509.Certificate) (crypto.Signer, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errNotItsKey
	}
	return key, nil
}
