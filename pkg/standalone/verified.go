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
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// rememberedCertificates is more than the users of one server.
	rememberedCertificates = 4096
	// rememberFor bounds how much later than the certificates in between the
	// expiry of the CA itself counts.
	rememberFor = time.Minute
)

// verified remembers whom a client certificate stands for. Clients keep their
// connections and send many requests on each; to verify the same signature for
// every one of them cost a twelfth of the CPU time that a server spent on
// creates.
type verified struct {
	authenticator.Request
	clientCA dynamiccertificates.CAContentProvider
	clock    clock.PassiveClock
	known    *lru.Cache
}

// identity is what a certificate was found to stand for.
type identity struct {
	response authenticator.Response
	// ca is what the certificate was verified against: other CAs, another answer.
	ca    []byte
	until time.Time
}

func newVerified(authn authenticator.Request, clientCA dynamiccertificates.CAContentProvider, clock clock.PassiveClock) *verified {
	return &verified{authn, clientCA, clock, lru.New(rememberedCertificates)}
}

// AuthenticateRequest asks for a certificate once, and again when it or a CA
// changes or expires. Only users are remembered, no refusals.
func (v *verified) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return v.Request.AuthenticateRequest(req)
	}
	certs := req.TLS.PeerCertificates
	key, ca, now := fingerprint(certs), v.clientCA.CurrentCABundleContent(), v.clock.Now()
	if found, ok := v.known.Get(key); ok {
		if known := found.(identity); now.Before(known.until) && bytes.Equal(ca, known.ca) {
			response := known.response
			return &response, true, nil
		}
	}
	response, ok, err := v.Request.AuthenticateRequest(req)
	if err != nil || !ok || response.User.GetName() == user.Anonymous { // who that is depends on the path
		return response, ok, err
	}
	until := now.Add(rememberFor)
	for _, cert := range certs {
		if cert.NotAfter.Before(until) {
			until = cert.NotAfter
		}
	}
	v.known.Add(key, identity{*response, ca, until})
	return response, ok, nil
}

func fingerprint(certs []*x509.Certificate) [sha256.Size]byte {
	hash := sha256.New()
	for _, cert := range certs {
		hash.Write(cert.Raw)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
