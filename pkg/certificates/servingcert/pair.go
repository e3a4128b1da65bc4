// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
)

// pair is a certificate with its key, and the CA that signed it.
type pair struct {
	certPEM, keyPEM []byte
	cert, ca        *x509.Certificate
}

// policy has the parameters of the certificates.
type policy struct {
	hosts    []string
	lifetime time.Duration
}

// create creates a CA and a certificate that expires together with it. The key of
// the CA is discarded, so that it cannot sign another certificate.
func (p policy) create(now time.Time) (*pair, error) {
	// Certificates have a precision of a second.
	ca, err := certificates.NewCA(fmt.Sprintf("borough-apiserver-ca@%d", now.UnixNano()), now, now.Add(p.lifetime).Truncate(time.Second))
	if err != nil {
		return nil, err
	}
	issued, err := ca.Issue(certificates.Server(p.hosts[0], p.hosts), now, ca.Cert.NotAfter)
	if err != nil {
		return nil, err
	}
	created := &pair{cert: issued.Cert, ca: ca.Cert}
	created.certPEM, created.keyPEM, err = issued.EncodePEM(ca.Cert)
	return created, err
}

// verify returns why the certificate cannot be served. It verifies as a TLS client
// does that trusts the CA, which is how kube-apiserver does.
//
// A certificate that is not valid yet was created by a replica whose clock is or was
// ahead. The replica whose clock is furthest behind replaces it with one that is valid
// for all.
func (p policy) verify(served *pair, now time.Time) error {
	if served == nil {
		return errors.New("there is none")
	}
	for _, cert := range []*x509.Certificate{served.cert, served.ca} {
		if err := certificates.CheckLifetime(cert, p.lifetime); err != nil {
			return err
		}
	}
	if !now.Before(served.cert.NotAfter) {
		return fmt.Errorf("it expired at %s", served.cert.NotAfter)
	}
	roots := x509.NewCertPool()
	roots.AddCert(served.ca)
	for _, host := range p.hosts {
		if _, err := served.cert.Verify(x509.VerifyOptions{
			DNSName: host, Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, CurrentTime: now,
		}); err != nil {
			return err
		}
	}
	return nil
}

// read returns a pair from the Secret that can be served. Its CA must be one of those
// that are trusted.
func (p policy) read(certPEM, keyPEM []byte, trusted []*x509.Certificate, now time.Time) (*pair, error) {
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, err
	}
	if len(certs) != 2 {
		return nil, fmt.Errorf("there are %d certificates, not one and its CA", len(certs))
	}
	if !contains(trusted, certs[1]) {
		return nil, fmt.Errorf("its CA %s is not in the caBundle of the APIService", certs[1].Subject)
	}
	stored := &pair{certPEM: certPEM, keyPEM: keyPEM, cert: certs[0], ca: certs[1]}
	if err := p.verify(stored, now); err != nil {
		return nil, err
	}
	// Last, because it is the most expensive for a hostile key.
	_, err = tls.X509KeyPair(certPEM, keyPEM)
	return stored, err
}

// at returns when that share of the certificate's lifetime is over.
func (p *pair) at(share float64) time.Time { return certificates.AtShare(p.cert, share) }

func contains(cas []*x509.Certificate, ca *x509.Certificate) bool {
	return slices.ContainsFunc(cas, ca.Equal)
}
