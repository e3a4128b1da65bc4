// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package httpsource

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/borough-io/borough/test/certs"
)

func TestClientCertificate(t *testing.T) {
	s := newServer(t, func(config *tls.Config) { config.ClientAuth = tls.RequireAnyClientCert })
	s.serve(func(w http.ResponseWriter, req *http.Request) {
		answer(pods(req.TLS.PeerCertificates[0].Subject.CommonName))(w, req)
	})
	wantError(t, newSource(t, s.URL, s.options()), "remote error: tls: certificate required")

	options := s.options()
	options.CertFile, options.KeyFile = s.ca.Client(t, "first")
	src := newSource(t, s.URL, options)
	wantPods(t, src, "first")
	// The files are replaced.
	cert, key := s.ca.Client(t, "second")
	rename(t, cert, options.CertFile)
	wantError(t, src, "read the client certificate: tls: private key does not match public key")
	rename(t, key, options.KeyFile)
	wantPods(t, src, "second")
}

func TestToken(t *testing.T) {
	s := newServer(t)
	accepted := "first"
	s.serve(func(w http.ResponseWriter, req *http.Request) {
		if got, want := req.Header.Get("Authorization"), "Bearer "+accepted; got != want {
			http.Error(w, fmt.Sprintf("%q is not %q", got, want), http.StatusUnauthorized)
			return
		}
		answer(pods("a"))(w, req)
	})
	wantError(t, newSource(t, s.URL, s.options()), "the server answers with 401")
	options := s.options()
	options.TokenFile = inFile(t, "first\n")
	src := newSource(t, s.URL, options)
	wantPods(t, src, "a")

	accepted = "second"
	wantError(t, src, "the server answers with 401")
	writeFile(t, options.TokenFile, "second")
	wantPods(t, src, "a")
	writeFile(t, options.TokenFile, "\n")
	wantError(t, src, "read the token file: "+options.TokenFile+" is empty")
	if err := os.Remove(options.TokenFile); err != nil {
		t.Fatal(err)
	}
	wantError(t, src, "read the token file: open ")
	writeFile(t, options.TokenFile, "second")
	wantPods(t, src, "a")
}

// TestTokenStays checks that a server that redirects to another does not make the source send
// the token there.
func TestTokenStays(t *testing.T) {
	other := newServer(t)
	other.serve(answer(pods("a")))
	s := newServer(t)
	s.serve(redirect(other.URL))
	options := s.options()
	options.CAFile = inFile(t, readFile(t, s.ca.File)+readFile(t, other.ca.File))
	options.TokenFile = inFile(t, "token")
	wantPods(t, newSource(t, other.URL, options), "a") // the certificate is trusted
	other.received()
	wantError(t, newSource(t, s.URL, options), "the server redirects to "+other.URL+", which is not followed")
	if requests := other.received(); len(requests) > 0 {
		t.Errorf("the other server got %d requests", len(requests))
	}
}

func TestCertificateOfServer(t *testing.T) {
	s := newServer(t)
	s.serve(answer(pods("a")))
	options := s.options()
	options.CAFile = inFile(t, readFile(t, certs.NewAuthority(t).File))
	src := newSource(t, s.URL, options)
	const unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
	wantError(t, src, unknown)
	rename(t, s.ca.File, options.CAFile)
	wantPods(t, src, "a")
	writeFile(t, options.CAFile, "garbage")
	wantError(t, src, "read the CA file: ")

	options.CAFile = "" // the CAs of the system
	wantError(t, newSource(t, s.URL, options), unknown)

	expired := newServer(t)
	expired.Close()
	expired.start(t, "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{expired.ca.Server(t, time.Unix(0, 0))}})
	wantError(t, newSource(t, expired.URL, expired.options()), "the certificate of the server, or a CA, is valid from 0001-01-01T00:00:00Z to 1970-01-01T00:00:00Z only")
}

func TestNewFails(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	empty := inFile(t, " \n")
	for want, options := range map[string]Options{
		"read the CA file: open " + missing + ": no such file or directory":                                                   {CAFile: missing},
		"read the CA file: error creating pool from " + empty + ": data does not contain any valid RSA or ECDSA certificates": {CAFile: empty},
		"read the client certificate: open " + missing + ": no such file or directory":                                        {CertFile: missing, KeyFile: missing},
		"read the token file: open " + missing + ": no such file or directory":                                                {TokenFile: missing},
		"read the token file: " + empty + " is empty":                                                                         {TokenFile: empty},
	} {
		if _, err := New("https://example.com/", options); err == nil || err.Error() != "set up the client of the source: "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestCause checks that two failures for the same reason have the same message.
func TestCause(t *testing.T) {
	address := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	refused := func(port int) error { // as the resolver of Go returns it
		text := fmt.Sprintf("read udp 127.0.0.1:%d->127.0.0.1:53: read: connection refused", port)
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "example.com", IsTemporary: true, Err: text}}
	}
	if first, second := cause(refused(4000), time.Second).Error(), cause(refused(4001), time.Second).Error(); first != second || first != "look up example.com: connection refused" {
		t.Errorf("got %s and %s", first, second)
	}
	for want, err := range map[string]error{
		"read 127.0.0.1:443: connection reset by peer":                   &url.Error{Op: "Get", URL: "https://example.com/?secret", Err: &net.OpError{Op: "read", Net: "tcp", Source: address(4000), Addr: address(443), Err: errors.New("connection reset by peer")}},
		"look up example.com: timed out":                                 &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "example.com", IsTimeout: true, Err: "read udp 127.0.0.1:4000->127.0.0.1:53: i/o timeout"}},
		"dial tcp: lookup example.com: no such host":                     &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "example.com", IsNotFound: true, Err: "no such host"}},
		"dial tcp 127.0.0.1:443: connection refused":                     &net.OpError{Op: "dial", Net: "tcp", Addr: address(443), Err: errors.New("connection refused")},
		"remote error: tls: certificate required":                        fmt.Errorf("noticed in the read loop: %w", &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}),
		"x509: certificate is not authorized to sign other certificates": x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign},
	} {
		if got := cause(err, time.Second).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
