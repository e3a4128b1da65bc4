// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokenissuer runs issuers of JSON web tokens for tests: OpenID Connect providers
// that serve their discovery document and keys over TLS.
package tokenissuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Issuer is an issuer of tokens.
type Issuer struct {
	// URL identifies the issuer.
	URL string
	// CA is the PEM of the CA of its certificate.
	CA string

	key  *ecdsa.PrivateKey
	down atomic.Bool
}

// New starts an issuer, which ends with the test.
func New(tb testing.TB) *Issuer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	i := &Issuer{key: key}
	server := httptest.NewTLSServer(i)
	tb.Cleanup(server.Close)
	i.URL = server.URL
	i.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return i
}

// SetDown makes the issuer answer with 503, or not any more.
func (i *Issuer) SetDown(down bool) { i.down.Store(down) }

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var answer map[string]any
	switch {
	case i.down.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case req.URL.Path == "/.well-known/openid-configuration":
		answer = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
	case req.URL.Path == "/keys":
		public, err := i.key.PublicKey.Bytes()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		x, y := public[1:33], public[33:] // it begins with its format
		answer = map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "key", "x": encode(x), "y": encode(y),
		}}}
	default:
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}

// Token returns a token of the issuer for the audience "borough" that is valid for an
// hour, with more or other claims.
func (i *Issuer) Token(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	all := map[string]any{"iss": i.URL, "aud": "borough", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	signed := toJSON(tb, map[string]any{"alg": "ES256", "kid": "key"}) + "." + toJSON(tb, all)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		tb.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encode(signature)
}

func toJSON(tb testing.TB, value any) string {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return encode(data)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
