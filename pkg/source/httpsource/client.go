// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package httpsource

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// maxRedirects is the number of redirects that are followed.
const maxRedirects = 3

// newClient returns a client for one request. A new one for each request, with a new
// connection, is simple, uses the files as they are now, and has no connections or goroutines
// that outlive the request.
func newClient(options Options) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if options.CAFile != "" {
		pool, err := certutil.NewPool(options.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA file: %w", err)
		}
		config.RootCAs = pool
	}
	if options.CertFile != "" {
		certificate, err := tls.LoadX509KeyPair(options.CertFile, options.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return &http.Client{
		// HTTP/1.1: HTTP/2 has no advantage for a single request.
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: checkRedirect,
	}, nil
}

// token returns the bearer token, or "".
func (o Options) token() (string, error) {
	if o.TokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token file: %w", err)
	}
	token := string(bytes.TrimSpace(data))
	if token == "" {
		return "", fmt.Errorf("read the token file: %s is empty", o.TokenFile)
	}
	return token, nil
}

// checkRedirect does not allow redirects to other servers, which would get the token.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case req.URL.Scheme != via[0].URL.Scheme || !strings.EqualFold(req.URL.Host, via[0].URL.Host):
		return fmt.Errorf("the server redirects to %s://%s, which is not followed", req.URL.Scheme, req.URL.Host)
	case len(via) > maxRedirects:
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	}
	return nil
}

// cause returns why a request failed, without the URL, whose query can be a secret, and
// without what differs between requests that fail for the same reason: it would be shown
// again each time.
func cause(err error, timeout time.Duration) error {
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err
	}
	dnsErr, isDNS := errors.AsType[*net.DNSError](err)
	opErr, isOp := errors.AsType[*net.OpError](err)
	certificateErr, isCertificate := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case isDNS && dnsErr.IsTimeout:
		return fmt.Errorf("look up %s: timed out", dnsErr.Name)
	case isDNS && !dnsErr.IsNotFound: // with the port that asked the resolver
		return fmt.Errorf("look up %s: %s", dnsErr.Name, strings.TrimSpace(dnsErr.Err[strings.LastIndex(dnsErr.Err, ": ")+1:]))
	case isCertificate && certificateErr.Reason == x509.Expired: // with the time
		return fmt.Errorf("the certificate of the server, or a CA, is valid from %s to %s only",
			certificateErr.Cert.NotBefore.UTC().Format(time.RFC3339), certificateErr.Cert.NotAfter.UTC().Format(time.RFC3339))
	case isOp && opErr.Op == "dial":
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("there is no complete response within %s", timeout)
	case isOp && opErr.Op == "remote error": // of TLS; the library adds where it was noticed, or not
		return opErr
	case isOp && opErr.Source != nil: // with a port that differs each time
		return fmt.Errorf("%s %s: %w", opErr.Op, opErr.Addr, opErr.Err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the response is cut off")
	case errors.Is(err, io.EOF):
		return errors.New("the server has closed the connection without a response")
	}
	return err
}
