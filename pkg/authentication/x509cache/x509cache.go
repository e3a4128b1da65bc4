// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package x509cache caches the verification of client certificates. Clients send many
// requests on one connection; to verify the same signature for each of them took a
// tenth of the CPU time that a server spent on creates.
package x509cache

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// size is the maximum number of cached certificates. It exceeds the number of
	// users of one server.
	size = 4096
	// ttl bounds how long a response is cached, and so how long a CA is still
	// accepted after it has expired.
	ttl = time.Minute
)

// cache is an authenticator that caches the responses of another one.
type cache struct {
	authenticator.Request
	trusted   []func() []byte
	clock     clock.PassiveClock
	responses *lru.Cache
}

// cachedResponse is the response for a certificate.
type cachedResponse struct {
	response authenticator.Response
	// trusted is what the certificate was verified with. The response is valid only
	// as long as that is the same.
	trusted [][]byte
	expires time.Time
}

// New returns an authenticator that caches the responses of authn, which depend only
// on the client certificates and on what the functions return, such as a CA bundle. They
// are called for each request, and what they return is kept for each certificate, so
// they should return the same slice until the content changes.
func New(authn authenticator.Request, trusted ...func() []byte) authenticator.Request {
	return newCache(authn, clock.RealClock{}, trusted...)
}

func newCache(authn authenticator.Request, clock clock.PassiveClock, trusted ...func() []byte) *cache {
	return &cache{authn, trusted, clock, lru.New(size)}
}

// AuthenticateRequest verifies a certificate once, and again when the certificate or
// what is trusted changes or expires. It caches users, but not failures.
func (c *cache) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return c.Request.AuthenticateRequest(req)
	}
	certs := req.TLS.PeerCertificates
	key, now := fingerprint(certs), c.clock.Now()
	trusted := make([][]byte, len(c.trusted))
	for i, current := range c.trusted {
		trusted[i] = current()
	}
	if found, ok := c.responses.Get(key); ok {
		if cached := found.(cachedResponse); now.Before(cached.expires) && slices.EqualFunc(trusted, cached.trusted, bytes.Equal) {
			response := cached.response
			return &response, true, nil
		}
	}
	response, ok, err := c.Request.AuthenticateRequest(req)
	if err != nil || !ok {
		return response, ok, err
	}
	expires := now.Add(ttl)
	for _, cert := range certs {
		if cert.NotAfter.Before(expires) {
			expires = cert.NotAfter
		}
	}
	c.responses.Add(key, cachedResponse{*response, trusted, expires})
	return response, ok, nil
}

func fingerprint(certs []*x509.Certificate) [sha256.Size]byte {
	hash := sha256.New()
	for _, cert := range certs {
		hash.Write(cert.Raw)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
