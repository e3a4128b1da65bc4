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
	"slices"
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

// A certificate is replaced in two steps. When renewAt of its life is over, the
// next one is made and its CA is trusted from then on. Halfway between then and
// the end of the old one, all who have to know the CA have had time to learn it,
// and the next one is served. The old one stays trusted until it expires.
const (
	renewAt = 0.6
	// promoteAt is how old the next one is, at most, when it is served. With the
	// same lifetimes this is halfway, too.
	promoteAt = 0.2
	// settleShare, of a life and at most settleMax, is how long the host must
	// have known a CA: it takes a moment to act by it.
	settleShare = 0.05
	settleMax   = time.Minute
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

// advance returns the bundle as it has to be now, and when to look again. It is
// told since when the host has trusted a CA, which is never if the time is zero.
func (p policy) advance(b bundle, now time.Time, knownSince func(ca *x509.Certificate) time.Time) (_ bundle, look time.Time, err error) {
	if !p.serves(b.next, now) {
		b.next = nil
	}
	if !p.serves(b.serving, now) || b.next != nil && !now.Before(b.promotion(knownSince(b.next.ca))) {
		b.serving, b.next = b.next, nil
	}
	if b.serving == nil {
		if b.serving, err = p.make(now); err != nil {
			return bundle{}, time.Time{}, err
		}
	}
	if b.next == nil && !now.Before(b.serving.at(renewAt)) {
		if b.next, err = p.make(now); err != nil {
			return bundle{}, time.Time{}, err
		}
	}

	// Each keeps its place, so that the host has nothing to do when all that
	// changes is which one is served.
	var trusted []*x509.Certificate
	for _, ca := range append(slices.Clone(b.trusted), b.cas()...) {
		if now.Before(ca.NotAfter) && !contains(trusted, ca) {
			trusted = append(trusted, ca)
		}
	}
	b.trusted = trusted

	if b.next == nil {
		look = b.serving.at(renewAt)
	} else {
		look = b.promotion(knownSince(b.next.ca))
	}
	for _, ca := range trusted {
		look = earliest(look, ca.NotAfter)
	}
	return b, look, nil
}

// promotion is when the next certificate is served, given since when the host
// knows its CA. While it does not, the old one is the better one until it ends.
func (b bundle) promotion(knownSince time.Time) time.Time {
	end := b.serving.cert.NotAfter
	if knownSince.IsZero() {
		return end
	}
	made := b.next.at(0)
	at := earliest(b.next.at(promoteAt), made.Add(end.Sub(made)/2))
	if settled := knownSince.Add(min(settleMax, b.serving.at(settleShare).Sub(b.serving.at(0)))); settled.After(at) {
		at = settled
	}
	return earliest(at, end)
}

// cas are those of what is and of what will be served.
func (b bundle) cas() []*x509.Certificate {
	var cas []*x509.Certificate
	for _, p := range []*pair{b.serving, b.next} {
		if p != nil {
			cas = append(cas, p.ca)
		}
	}
	return cas
}

// repaired returns the bundle with what it lacks taken from another, an earlier
// one: what is still served must stay trusted.
func (b bundle) repaired(from bundle) bundle {
	if b.serving == nil && from.serving != nil {
		b.serving, b.next = from.serving, from.next
	}
	for _, ca := range b.cas() {
		if !contains(b.trusted, ca) {
			b.trusted = append(slices.Clone(b.trusted), from.trusted...)
			break
		}
	}
	return b
}

// at returns when that share of the certificate's life is over.
func (p *pair) at(share float64) time.Time {
	made := p.cert.NotBefore.Add(clockSkew)
	return made.Add(time.Duration(share * float64(p.cert.NotAfter.Sub(made))).Round(time.Millisecond))
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func contains(cas []*x509.Certificate, ca *x509.Certificate) bool {
	return slices.ContainsFunc(cas, ca.Equal)
}

// serves says whether there is a certificate that can be served.
func (p policy) serves(served *pair, now time.Time) bool {
	if served == nil || !now.Before(served.cert.NotAfter) {
		return false
	}
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
// there.
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
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil || certs[0].CheckSignatureFrom(certs[1]) != nil {
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
