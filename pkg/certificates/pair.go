// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates creates certificate authorities and the certificates that
// they sign, and keeps them in a directory. Packages servingcert and etcdca keep them in
// Secrets and renew them.
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
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// ClockSkew is by how much the clock of a client may be behind: certificates are
// valid from that long before they are created.
const ClockSkew = 5 * time.Minute

// Pair is a certificate and its key. The keys of this package are ECDSA keys on the
// curve P-256.
type Pair struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// NewCA creates a CA with a new key and a self-signed certificate that is valid until
// notAfter.
func NewCA(name string, now, notAfter time.Time) (Pair, error) {
	ca, err := newKey()
	if err == nil {
		ca, err = ca.selfSign(pkix.Name{CommonName: name}, now, notAfter)
	}
	if err != nil {
		return Pair{}, fmt.Errorf("create the CA %s: %w", name, err)
	}
	return ca, nil
}

// RenewCA returns the CA with another certificate, which is valid until notAfter. What
// the CA has signed verifies with both.
func (p Pair) RenewCA(now, notAfter time.Time) (Pair, error) {
	renewed, err := p.selfSign(p.Cert.Subject, now, notAfter)
	if err != nil {
		return Pair{}, fmt.Errorf("renew the CA %s: %w", p.Cert.Subject, err)
	}
	return renewed, nil
}

func (p Pair) selfSign(subject pkix.Name, now, notAfter time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject:               subject,
		NotBefore:             now.Add(-ClockSkew),
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return p.sign(template, template, p.Key)
}

// Issue returns a new key and a certificate for it, signed by the pair, which is a
// CA. The template has the subject, the names and the usages. The certificate is valid
// until notAfter, but not longer than the CA.
func (p Pair) Issue(template *x509.Certificate, now, notAfter time.Time) (Pair, error) {
	issued := *template
	issued.NotBefore, issued.NotAfter = now.Add(-ClockSkew), notAfter
	if notAfter.After(p.Cert.NotAfter) {
		issued.NotAfter = p.Cert.NotAfter
	}
	pair, err := newKey()
	if err == nil {
		pair, err = pair.sign(&issued, p.Cert, p.Key)
	}
	if err != nil {
		return Pair{}, fmt.Errorf("create the certificate of %s: %w", template.Subject, err)
	}
	return pair, nil
}

// newKey returns a pair without a certificate.
func newKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate a key: %w", err)
	}
	return Pair{Key: key}, nil
}

// sign returns the key of the pair with a certificate for it.
func (p Pair) sign(template, parent *x509.Certificate, signer crypto.Signer) (Pair, error) {
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, fmt.Errorf("choose a serial number: %w", err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, p.Key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign: %w", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return Pair{}, fmt.Errorf("parse: %w", err)
	}
	return Pair{cert, p.Key}, nil
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

// Covers returns an error unless the CA has signed cert, it is valid, and it has the
// subject, the names and the usages of the template.
func Covers(cert, ca, template *x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, usage := range append([]x509.ExtKeyUsage{x509.ExtKeyUsageAny}, template.ExtKeyUsage...) {
		// One usage of several would be enough for Verify.
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			return err
		}
	}
	if cert.Subject.String() != template.Subject.String() {
		return fmt.Errorf("its subject is %s", cert.Subject)
	}
	for _, ip := range template.IPAddresses {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return fmt.Errorf("it is not valid for %s", ip)
		}
	}
	for _, name := range template.DNSNames {
		if !slices.Contains(cert.DNSNames, name) {
			return fmt.Errorf("it is not valid for %s", name)
		}
	}
	return nil
}

// CheckLifetime returns an error if the certificate was created to be valid for longer
// than lifetime.
func CheckLifetime(cert *x509.Certificate, lifetime time.Duration) error {
	// Both times have a precision of a second.
	if valid := cert.NotAfter.Sub(cert.NotBefore); valid > lifetime+ClockSkew+time.Second {
		return fmt.Errorf("%s is valid for %s, longer than %s", cert.Subject, valid, lifetime)
	}
	return nil
}

// AtShare returns when that share of the certificate's lifetime is over.
func AtShare(cert *x509.Certificate, share float64) time.Time {
	created := cert.NotBefore.Add(ClockSkew)
	return created.Add(time.Duration(share * float64(cert.NotAfter.Sub(created))).Round(time.Millisecond))
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

// ParsePEM returns the first certificate, and its key.
func ParsePEM(certPEM, keyPEM []byte) (Pair, error) {
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return Pair{}, fmt.Errorf("parse the certificate: %w", err)
	}
	key, err := parseKey(keyPEM, certs[0])
	if err != nil {
		return Pair{}, fmt.Errorf("parse the key: %w", err)
	}
	return Pair{certs[0], key}, nil
}

func parseKey(keyPEM []byte, cert *x509.Certificate) (crypto.Signer, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errNotItsKey
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(cert.PublicKey) {
		return nil, errNotItsKey
	}
	return key, nil
}
