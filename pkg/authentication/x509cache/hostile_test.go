// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package x509cache

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/borough-io/borough/test/certs"
)

// TestHostileCertificates sends certificates that take long to verify, or to quote, to a server
// that does not verify them in the handshake, and counts the verifications.
func TestHostileCertificates(t *testing.T) {
	newCert := func(template *x509.Certificate, ca *x509.Certificate, key crypto.PrivateKey) (*x509.Certificate, crypto.PrivateKey) {
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		return certs.Sign(t, template, ca, key)
	}
	newCA := func(name string) (*x509.Certificate, crypto.PrivateKey) {
		return newCert(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
	}
	trusted, trustedKey := newCA("trusted")
	other, otherKey := newCA("other")
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	var verifications atomic.Int32
	authn := newCache(x509request.NewDynamic(func() (x509.VerifyOptions, bool) {
		verifications.Add(1)
		return x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}, x509request.CommonNameUserConversion), clocktesting.NewFakePassiveClock(time.Now()))

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		response, ok, err := authn.AuthenticateRequest(req)
		switch {
		case ok:
			io.WriteString(w, response.User.GetName())
		case err != nil:
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()

	for name, tc := range map[string]struct {
		ca            *x509.Certificate
		key           crypto.PrivateKey
		keyID         []byte
		intermediates int // with the name of the CA, none of which has signed the certificate
		want          string
		verifications int32
	}{
		"one that is trusted":       {ca: trusted, key: trustedKey, want: "alice", verifications: 1},
		"with a few CAs":            {ca: trusted, key: trustedKey, intermediates: maxCertificates - 1, want: "alice", verifications: 1},
		"with too many CAs":         {ca: trusted, key: trustedKey, intermediates: maxCertificates, want: "the client sent 11 certificates", verifications: 0},
		"of another CA":             {ca: other, key: otherKey, want: "signed by unknown authority", verifications: 1},
		"of one of a few CAs":       {ca: other, key: otherKey, intermediates: maxCertificates - 1, want: "signed by unknown authority", verifications: 1},
		"of one of a hundred CAs":   {ca: other, key: otherKey, intermediates: 100, want: "the client sent 101 certificates", verifications: 0},
		"of another CA, with an ID": {ca: other, key: otherKey, keyID: bytes.Repeat([]byte{0xff}, 50_000), want: "verifying certificate SN=1, SKID=FF:FF", verifications: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cert, key := newCert(&x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, SubjectKeyId: tc.keyID}, tc.ca, tc.key)
			sent := tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
			for range tc.intermediates {
				ca, _ := newCA(tc.ca.Subject.CommonName)
				sent.Certificate = append(sent.Certificate, ca.Raw)
			}
			transport := server.Client().Transport.(*http.Transport).Clone()
			transport.TLSClientConfig.Certificates = []tls.Certificate{sent}
			defer transport.CloseIdleConnections()
			verifications.Store(0)
			for range 3 {
				response, err := (&http.Client{Transport: transport}).Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || !strings.Contains(string(text), tc.want) || len(text) > maxError+1 {
					t.Errorf("got %d bytes (%v): %.600s", len(text), err, text)
				}
			}
			if got := verifications.Load(); got != tc.verifications {
				t.Errorf("%d verifications, want %d", got, tc.verifications)
			}
		})
	}
}
