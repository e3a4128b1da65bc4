// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// cacheSize is the maximum number of cached certificates. It exceeds the number
	// of users of one server.
	cacheSize = 4096
	// cacheTTL bounds how long a response is cached, and so how long a CA is still
	// accepted after it has expired.
	cacheTTL = time.Minute
)

// cachingAuthenticator caches the users of client certificates. Clients send many
// requests on one connection; to verify the same signature for each of them took a
// twelfth of the CPU time that a server spent on creates.
type cachingAuthenticator struct {
	authenticator.Request
	clientCA dynamiccertificates.CAContentProvider
	clock    clock.PassiveClock
	cache    *lru.Cache
}

// cachedResponse is the response for a certificate.
type cachedResponse struct {
	response authenticator.Response
	// ca is the CA bundle that the certificate was verified with. The response is
	// valid only for that bundle.
	ca      []byte
	expires time.Time
}

func newCachingAuthenticator(authn authenticator.Request, clientCA dynamiccertificates.CAContentProvider, clock clock.PassiveClock) *cachingAuthenticator {
	return &cachingAuthenticator{authn, clientCA, clock, lru.New(cacheSize)}
}

// AuthenticateRequest verifies a certificate once, and again when the certificate or
// a CA changes or expires. It caches users, but not failures.
func (c *cachingAuthenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return c.Request.AuthenticateRequest(req)
	}
	certs := req.TLS.PeerCertificates
	key, ca, now := fingerprint(certs), c.clientCA.CurrentCABundleContent(), c.clock.Now()
	if found, ok := c.cache.Get(key); ok {
		if cached := found.(cachedResponse); now.Before(cached.expires) && bytes.Equal(ca, cached.ca) {
			response := cached.response
			return &response, true, nil
		}
	}
	response, ok, err := c.Request.AuthenticateRequest(req)
	if err != nil || !ok {
		return response, ok, err
	}
	expires := now.Add(cacheTTL)
	for _, cert := range certs {
		if cert.NotAfter.Before(expires) {
			expires = cert.NotAfter
		}
	}
	c.cache.Add(key, cachedResponse{*response, ca, expires})
	return response, ok, nil
}

func fingerprint(certs []*x509.Certificate) [sha256.Size]byte {
	hash := sha256.New()
	for _, cert := range certs {
		hash.Write(cert.Raw)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
