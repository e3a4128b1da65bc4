// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package x509cache caches the verification of client certificates. Clients send many
// requests on one connection; to verify the same signature for each of them took a
// tenth of the CPU time that a server spent on creates. A client without a valid
// certificate can make one verification try a hundred signatures.
package x509cache

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/borough-io/borough/pkg/truncate"
)

const (
	// size is the maximum number of cached certificates, of users and of others each. It
	// exceeds the number of users of one server.
	size = 4096
	// ttl bounds how long a response is cached, and so how long a CA is still
	// accepted after it has expired.
	ttl = time.Minute
	// failureTTL bounds how long a failure is cached, and so how long a CA is still
	// refused after it has become valid.
	failureTTL = 5 * time.Second
	// maxCertificates is how many certificates a client may send. Each can be one whose
	// signature is verified.
	maxCertificates = 10
	// maxError is the maximum length of an error in bytes. It quotes the certificate, is
	// cached, and is logged for each request.
	maxError = 512
)

// cache is an authenticator that caches the responses of another one.
type cache struct {
	authenticator.Request
	trusted []func() []byte
	clock   clock.PassiveClock
	// users and failures are separate, so that failures do not evict users.
	users, failures *lru.Cache
	verifications   singleflight.Group
}

// cachedResponse is the response for a certificate.
type cachedResponse struct {
	response *authenticator.Response // nil for a failure
	err      error
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
	return &cache{Request: authn, trusted: trusted, clock: clock, users: lru.New(size), failures: lru.New(size)}
}

// AuthenticateRequest verifies a certificate once, and again when the certificate or
// what is trusted changes or expires, or the certificate becomes valid. It caches
// failures for a shorter time than users. Concurrent requests share a verification.
func (c *cache) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return c.Request.AuthenticateRequest(req)
	}
	certs := req.TLS.PeerCertificates
	if n := len(certs); n > maxCertificates {
		return nil, false, fmt.Errorf("the client sent %d certificates, more than the maximum of %d", n, maxCertificates)
	}
	trusted := make([][]byte, len(c.trusted))
	for i, current := range c.trusted {
		trusted[i] = current()
	}
	key := fingerprint(certs)
	found, ok := c.find(key, trusted)
	if !ok {
		shared := string(bytes.Join(append(trusted, key[:]), []byte{0}))
		result, _, _ := c.verifications.Do(shared, func() (any, error) {
			if found, ok := c.find(key, trusted); ok { // of a verification that has just ended
				return found, nil
			}
			return c.verify(req, key, trusted), nil
		})
		found = result.(cachedResponse)
	}
	if found.response == nil {
		return nil, false, found.err
	}
	response := *found.response
	return &response, true, nil
}

func (c *cache) find(key [sha256.Size]byte, trusted [][]byte) (cachedResponse, bool) {
	for _, responses := range []*lru.Cache{c.users, c.failures} {
		if found, ok := responses.Get(key); ok {
			if cached := found.(cachedResponse); c.clock.Now().Before(cached.expires) && slices.EqualFunc(trusted, cached.trusted, bytes.Equal) {
				return cached, true
			}
		}
	}
	return cachedResponse{}, false
}

// verify returns and caches the response of the other authenticator.
func (c *cache) verify(req *http.Request, key [sha256.Size]byte, trusted [][]byte) cachedResponse {
	now := c.clock.Now()
	response, ok, err := c.Request.AuthenticateRequest(req)
	if err != nil || !ok {
		if err != nil {
			err = errors.New(truncate.Text(err.Error(), maxError)) // the error refers to certificates, too
		}
		failure := cachedResponse{nil, err, trusted, now.Add(failureTTL)}
		for _, cert := range req.TLS.PeerCertificates {
			if cert.NotBefore.After(now) && cert.NotBefore.Before(failure.expires) {
				failure.expires = cert.NotBefore
			}
		}
		c.failures.Add(key, failure)
		return failure
	}
	user := cachedResponse{response, nil, trusted, now.Add(ttl)}
	for _, cert := range req.TLS.PeerCertificates {
		if cert.NotAfter.Before(user.expires) {
			user.expires = cert.NotAfter
		}
	}
	c.users.Add(key, user)
	return user
}

func fingerprint(certs []*x509.Certificate) [sha256.Size]byte {
	hash := sha256.New()
	for _, cert := range certs {
		hash.Write(cert.Raw)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
