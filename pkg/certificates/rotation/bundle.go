// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rotation renews the serving certificate of the servers behind a cluster.
// The servers share the certificate in a Secret, and write the CA that
// kube-apiserver has to trust into the APIService.
package rotation

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
)

// Keys of the Secret, in addition to tls.crt and tls.key, which are served.
const (
	// trustKey has the CAs to trust: those of the certificate that is served, of
	// the next one, and of earlier ones that some replica may still serve.
	trustKey = "ca.crt"
	// nextCertKey and nextKeyKey have the next certificate, which is served when
	// its CA is trusted.
	nextCertKey = "next.crt"
	nextKeyKey  = "next.key"
)

// A certificate is replaced in two steps. After the share renewAt of its lifetime,
// the next one is created, and its CA is added to those to trust. Halfway between
// then and the end of the old certificate, all clients have had time to load the
// CA, and the next one is served. The old one stays trusted until it expires.
const (
	renewAt = 0.6
	// promoteAt is the share of its lifetime after which the next one is served at
	// the latest. With equal lifetimes this is also halfway.
	promoteAt = 0.2
	// settleShare of a lifetime, and at most settleMax, is how long the APIService
	// must have had a CA before it counts as trusted: kube-apiserver takes a
	// moment to load it.
	settleShare = 0.05
	settleMax   = time.Minute
)

// pair is a certificate with its key, and the CA that signed it.
type pair struct {
	certPEM, keyPEM []byte
	cert, ca        *x509.Certificate
}

// bundle is the content of the Secret. The zero bundle has no certificate.
type bundle struct {
	serving, next *pair
	trusted       []*x509.Certificate
}

// policy has the parameters of the certificates.
type policy struct {
	hosts    []string
	lifetime time.Duration
}

// advance returns what the bundle has to be now, and when to call advance again.
// trustedSince returns since when the APIService has had a CA, or zero.
func (p policy) advance(b bundle, now time.Time, trustedSince func(ca *x509.Certificate) time.Time) (_ bundle, next time.Time, err error) {
	if !p.serves(b.next, now) {
		b.next = nil
	}
	if !p.serves(b.serving, now) || b.next != nil && !now.Before(b.promotion(trustedSince(b.next.ca))) {
		b.serving, b.next = b.next, nil
	}
	if b.serving == nil {
		if b.serving, err = p.create(now); err != nil {
			return bundle{}, time.Time{}, err
		}
	}
	if b.next == nil && !now.Before(b.serving.at(renewAt)) {
		if b.next, err = p.create(now); err != nil {
			return bundle{}, time.Time{}, err
		}
	}

	// Keep the order, so that the APIService does not change when only the
	// certificate that is served does.
	var trusted []*x509.Certificate
	for _, ca := range append(slices.Clone(b.trusted), b.cas()...) {
		if now.Before(ca.NotAfter) && !contains(trusted, ca) {
			trusted = append(trusted, ca)
		}
	}
	b.trusted = trusted

	if b.next == nil {
		next = b.serving.at(renewAt)
	} else {
		next = b.promotion(trustedSince(b.next.ca))
	}
	for _, ca := range trusted {
		next = earliest(next, ca.NotAfter)
	}
	return b, next, nil
}

// promotion returns when the next certificate is to be served, given since when its
// CA is trusted. While it is not, the old one is served until it expires.
func (b bundle) promotion(trustedSince time.Time) time.Time {
	end := b.serving.cert.NotAfter
	if trustedSince.IsZero() {
		return end
	}
	created := b.next.at(0)
	at := earliest(b.next.at(promoteAt), created.Add(end.Sub(created)/2))
	if settled := trustedSince.Add(min(settleMax, b.serving.at(settleShare).Sub(b.serving.at(0)))); settled.After(at) {
		at = settled
	}
	return earliest(at, end)
}

// cas returns the CAs of the certificate that is served and of the next one.
func (b bundle) cas() []*x509.Certificate {
	var cas []*x509.Certificate
	for _, p := range []*pair{b.serving, b.next} {
		if p != nil {
			cas = append(cas, p.ca)
		}
	}
	return cas
}

// repaired returns the bundle, completed from an earlier one: a certificate that is
// still served must stay trusted.
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

// at returns when that share of the certificate's lifetime is over.
func (p *pair) at(share float64) time.Time {
	created := p.cert.NotBefore.Add(certificates.ClockSkew)
	return created.Add(time.Duration(share * float64(p.cert.NotAfter.Sub(created))).Round(time.Millisecond))
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

// serves reports whether there is a certificate that can be served. One that is
// not valid yet was created by a replica whose clock is or was ahead. The replica
// whose clock is furthest behind replaces it with one that is valid for all.
func (p policy) serves(served *pair, now time.Time) bool {
	if served == nil || now.Before(served.cert.NotBefore) || !now.Before(served.cert.NotAfter) {
		return false
	}
	for _, host := range p.hosts {
		if served.cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// create creates a CA and a certificate that expires together with it. The key of
// the CA is discarded, so that it cannot sign another certificate.
func (p policy) create(now time.Time) (*pair, error) {
	// Certificates have a precision of a second.
	ca, err := certificates.NewCA(fmt.Sprintf("borough-apiserver-ca@%d", now.UnixNano()), now, now.Add(p.lifetime).Truncate(time.Second))
	if err != nil {
		return nil, err
	}
	issued, err := ca.Issue(certificates.Server(p.hosts[0], p.hosts), now)
	if err != nil {
		return nil, err
	}
	created := &pair{cert: issued.Cert, ca: ca.Cert}
	created.certPEM, created.keyPEM, err = issued.EncodePEM(ca.Cert)
	return created, err
}

// readBundle returns the content of the Secret. A part that cannot be read counts
// as missing.
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

// data returns the content of the Secret.
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

// trustPEM returns the CAs that kube-apiserver has to trust.
func (b bundle) trustPEM() []byte {
	var text bytes.Buffer
	for _, ca := range b.trusted {
		encoded, _ := certutil.EncodeCertificates(ca) // writing to memory does not fail
		text.Write(encoded)
	}
	return text.Bytes()
}
