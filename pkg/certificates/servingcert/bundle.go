// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
)

// Keys of the Secret, in addition to tls.crt and tls.key, which are served.
const (
	// trustKey has the CAs in the caBundle, for other clients. Servers do not read it.
	trustKey = "ca.crt"
	// nextCertKey and nextKeyKey have the next certificate, which is served when
	// its CA is trusted.
	nextCertKey = "next.crt"
	nextKeyKey  = "next.key"
)

// A certificate is replaced in two steps. After the share renewAt of its lifetime,
// the next one is created, and its CA is added to those to trust. Halfway between
// then and the end of the old certificate, all clients have had time to load the
// CA, and the next one is served.
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

// bundle is the content of the Secret. The zero bundle has no certificate.
type bundle struct {
	serving, next *pair
}

// readBundle returns what the Secret has that can be served, and why other parts of it
// cannot.
func (p policy) readBundle(secret *corev1.Secret, trusted []*x509.Certificate, now time.Time) (b bundle, ignored error) {
	for _, part := range []struct {
		certKey, keyKey string
		into            **pair
	}{
		{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, &b.serving},
		{nextCertKey, nextKeyKey, &b.next},
	} {
		if len(secret.Data[part.certKey]) == 0 {
			continue
		}
		stored, err := p.read(secret.Data[part.certKey], secret.Data[part.keyKey], trusted, now)
		if err != nil {
			ignored = errors.Join(ignored, fmt.Errorf("%s: %w", part.certKey, err))
			continue
		}
		*part.into = stored
	}
	return b, ignored
}

// advance returns what the bundle has to be now, and when to call advance again.
// trustedSince returns since when the APIService has had a CA, or zero. It gets new
// certificates from create.
func (p policy) advance(b bundle, now time.Time, trustedSince func(*x509.Certificate) time.Time, create func(time.Time) (*pair, error)) (_ bundle, next time.Time, err error) {
	if p.verify(b.next, now) != nil {
		b.next = nil
	}
	if p.verify(b.serving, now) != nil || b.next != nil && !now.Before(p.promotion(b, trustedSince(b.next.ca))) {
		b.serving, b.next = b.next, nil
	}
	if b.serving == nil {
		if b.serving, err = create(now); err != nil {
			return bundle{}, time.Time{}, err
		}
	}
	if b.next == nil && !now.Before(b.serving.at(renewAt)) {
		if b.next, err = create(now); err != nil {
			return bundle{}, time.Time{}, err
		}
	}
	if b.next == nil {
		return b, b.serving.at(renewAt), nil
	}
	return b, p.promotion(b, trustedSince(b.next.ca)), nil
}

// promotion returns when the next certificate is to be served, given since when its
// CA is trusted. While it is not, the old one is served until it expires.
func (p policy) promotion(b bundle, trustedSince time.Time) time.Time {
	end := b.serving.cert.NotAfter
	if trustedSince.IsZero() {
		return end
	}
	created := b.next.at(0)
	at := earliest(b.next.at(promoteAt), created.Add(end.Sub(created)/2))
	if settled := trustedSince.Add(p.settle()); settled.After(at) {
		at = settled
	}
	return earliest(at, end)
}

// settle is how long kube-apiserver has to load a CA.
func (p policy) settle() time.Duration {
	return min(settleMax, time.Duration(settleShare*float64(p.lifetime)))
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

// data returns the content of the Secret.
func (b bundle) data(trusted []*x509.Certificate) map[string][]byte {
	data := map[string][]byte{
		corev1.TLSCertKey:       b.serving.certPEM,
		corev1.TLSPrivateKeyKey: b.serving.keyPEM,
		trustKey:                encode(trusted),
	}
	if b.next != nil {
		data[nextCertKey], data[nextKeyKey] = b.next.certPEM, b.next.keyPEM
	}
	return data
}

// encode returns certificates as PEM.
func encode(cas []*x509.Certificate) []byte {
	text, _ := certutil.EncodeCertificates(cas...) // writing to memory does not fail
	return text
}

// earliest returns the earliest of the times that are not zero.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
