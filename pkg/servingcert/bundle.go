// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert makes the certificate that the replicas of a server in a
// host cluster serve with, keeps it in a Secret that they share, and tells the
// host's API server, in the APIService, what to trust.
package servingcert

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// What the Secret holds beside tls.crt and tls.key, which are what is served.
const (
	// trustKey holds the CAs to trust: of what is served, of what is to be
	// served next, and of what was served before and may still be.
	trustKey = "ca.crt"
	// nextCertKey and nextKeyKey hold what will be served once it is trusted.
	nextCertKey = "next.crt"
	nextKeyKey  = "next.key"
)

// A certificate is replaced in two steps. With renewAt of its life left, the
// next one is made and its CA is trusted from then on; when that one has
// promoteAfter of its own life behind it, all who have to know its CA have had
// time to learn it, and it is served. The old one stays trusted until it
// expires.
const (
	renewAt      = 0.4
	promoteAfter = 0.2
	// clockSkew is how far behind the clock of the host may be.
	clockSkew = 5 * time.Minute
)

// pair is a certificate with the CA that signed it, and its key. The key of the
// CA is thrown away when it has signed: nobody can use it for another.
type pair struct {
	certPEM, keyPEM []byte
	cert, ca        *x509.Certificate
}

// bundle is the content of the Secret. The zero bundle has nothing to serve.
type bundle struct {
	serving, next *pair
	trusted       []*x509.Certificate
}

// policy says what certificates are made like.
type policy struct {
	hosts    []string
	lifetime time.Duration
}

// advance returns the bundle as it has to be now, whether that is another, and
// when to look again. A CA is known when the host trusts it.
func (p policy) advance(b bundle, now time.Time, known func(ca *x509.Certificate) bool) (_ bundle, changed bool, next time.Time, _ error) {
	part := func(share float64) time.Duration { return time.Duration(share * float64(p.lifetime)) }

	if b.serving == nil || !p.covers(b.serving) || !now.Before(b.serving.cert.NotAfter) {
		made, err := p.make(now)
		if err != nil {
			return bundle{}, false, time.Time{}, err
		}
		b = bundle{serving: made, trusted: b.trusted}
		changed = true
	}
	if b.next == nil && !now.Before(b.serving.cert.NotAfter.Add(-part(renewAt))) {
		made, err := p.make(now)
		if err != nil {
			return bundle{}, false, time.Time{}, err
		}
		b.next = made
		changed = true
	}
	if b.next != nil && !now.Before(b.promotion(part(1-promoteAfter))) {
		// Should the host not know it when the old one is about to expire, then
		// waiting longer helps nobody.
		if known(b.next.ca) || !now.Before(b.serving.cert.NotAfter.Add(-part(renewAt/8))) {
			b.serving, b.next = b.next, nil
			changed = true
		}
	}

	trusted := []*x509.Certificate{b.serving.ca}
	if b.next != nil {
		trusted = append(trusted, b.next.ca)
	}
	for _, ca := range b.trusted {
		if now.Before(ca.NotAfter) && !contains(trusted, ca) {
			trusted = append(trusted, ca)
		}
	}
	changed = changed || len(trusted) != len(b.trusted)
	b.trusted = trusted

	if b.next == nil {
		next = b.serving.cert.NotAfter.Add(-part(renewAt))
	} else if next = b.promotion(part(1 - promoteAfter)); !now.Before(next) {
		next = b.serving.cert.NotAfter.Add(-part(renewAt / 8))
	}
	for _, ca := range trusted {
		if ca.NotAfter.Before(next) {
			next = ca.NotAfter
		}
	}
	return b, changed, next, nil
}

// promotion is when the next certificate may be served, given how much of its
// life is left then.
func (b bundle) promotion(left time.Duration) time.Time {
	return b.next.cert.NotAfter.Add(-left)
}

func contains(cas []*x509.Certificate, ca *x509.Certificate) bool {
	for _, c := range cas {
		if c.Equal(ca) {
			return true
		}
	}
	return false
}

func (p policy) covers(served *pair) bool {
	for _, host := range p.hosts {
		if served.cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// make makes a CA, and with it a certificate that expires together with it.
func (p policy) make(now time.Time) (*pair, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of a CA: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	// To the second, as certificates have it.
	notBefore, notAfter := now.Add(-clockSkew), now.Add(p.lifetime).Truncate(time.Second)
	caTemplate := &x509.Certificate{
		Subject:               pkix.Name{CommonName: fmt.Sprintf("borough-apiserver-ca@%d", now.UnixNano())},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	ca, err := sign(caTemplate, caTemplate, caKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	cert, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: p.hosts[0]},
		DNSNames:    p.hosts,
		NotBefore:   notBefore,
		NotAfter:    notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}

	made := &pair{cert: cert, ca: ca}
	if made.certPEM, err = certutil.EncodeCertificates(cert, ca); err != nil {
		return nil, fmt.Errorf("encode a certificate: %w", err)
	}
	if made.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return made, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// readBundle returns what the Secret holds. What can't be read counts as not
// there: it is made anew.
func readBundle(secret *corev1.Secret) bundle {
	b := bundle{
		serving: readPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]),
		next:    readPair(secret.Data[nextCertKey], secret.Data[nextKeyKey]),
	}
	b.trusted, _ = certutil.ParseCertsPEM(secret.Data[trustKey])
	return b
}

func readPair(certPEM, keyPEM []byte) *pair {
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil || len(certs) != 2 {
		return nil
	}
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return nil
	}
	return &pair{certPEM: certPEM, keyPEM: keyPEM, cert: certs[0], ca: certs[1]}
}

// data returns the bundle as the Secret holds it.
func (b bundle) data() map[string][]byte {
	data := map[string][]byte{
		corev1.TLSCertKey:       b.serving.certPEM,
		corev1.TLSPrivateKeyKey: b.serving.keyPEM,
		trustKey:                b.trustPEM(),
	}
	if b.next != nil {
		data[nextCertKey], data[nextKeyKey] = b.next.certPEM, b.next.keyPEM
	}
	return data
}

// trustPEM is what the host has to trust.
func (b bundle) trustPEM() []byte {
	var text bytes.Buffer
	for _, ca := range b.trusted {
		encoded, _ := certutil.EncodeCertificates(ca) // writing to memory does not fail
		text.Write(encoded)
	}
	return text.Bytes()
}
