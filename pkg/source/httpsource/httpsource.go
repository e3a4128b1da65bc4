// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpsource reads Pods from a URL, and polls it.
package httpsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/source/manifest"
)

const (
	// minRetryDelay and maxRetryDelay bound the time between a failed request and the
	// next. It doubles from one to the other, and is jittered.
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
	// jitter is the largest part that is added to the time between requests, so that many
	// nodes do not send theirs at the same moment.
	jitter = 0.2
	// maxRedirects is the number of redirects that are followed.
	maxRedirects = 3
)

// Options are how a URL is read.
type Options struct {
	// CAFile has the CAs that sign the certificate of the server, in PEM. If empty, those
	// of the system.
	CAFile string
	// CertFile and KeyFile have the client certificate and its key, in PEM. If empty, none.
	// They are read again when they change.
	CertFile, KeyFile string
	// TokenFile has a bearer token. If empty, none. It is read again once a minute.
	TokenFile string
	// Interval is the time between two requests.
	Interval time.Duration
	// Timeout bounds a request with its response.
	Timeout time.Duration
}

// Source is a URL.
type Source struct {
	url      string
	client   *http.Client
	interval time.Duration
	// minRetryDelay is that of the package, except in tests.
	minRetryDelay time.Duration

	mu   sync.Mutex
	last *response // the last one that could be read
}

var _ source.Reader = (*Source)(nil)

// response is a response with its validators (RFC 9110, section 8.8).
type response struct {
	etag, lastModified string
	content            source.Content
}

// New returns the source at an HTTPS URL.
func New(location string, options Options) (*Source, error) {
	client, err := rest.HTTPClientFor(&rest.Config{
		BearerTokenFile: options.TokenFile,
		TLSClientConfig: rest.TLSClientConfig{CAFile: options.CAFile, CertFile: options.CertFile, KeyFile: options.KeyFile},
		Timeout:         options.Timeout,
		UserAgent:       "borough-source",
	})
	if err != nil {
		return nil, fmt.Errorf("set up the client of the source: %w", err)
	}
	// A copy, because the library can return a client that is shared.
	own := *client
	own.CheckRedirect = checkRedirect
	return &Source{url: location, client: &own, interval: options.Interval, minRetryDelay: minRetryDelay}, nil
}

// checkRedirect does not allow redirects to other servers, which would get the token.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host:
		return fmt.Errorf("redirects to %s://%s, which is not followed", req.URL.Scheme, req.URL.Host)
	case len(via) > maxRedirects:
		return fmt.Errorf("redirects more than %d times", maxRedirects)
	}
	return nil
}

// Read implements source.Reader.
func (s *Source) Read(ctx context.Context) (source.Content, error) {
	content, _, err := s.read(ctx)
	return content, err
}

// Run implements source.Reader. It polls.
func (s *Source) Run(ctx context.Context, handle func(source.Content, error)) error {
	backoff := s.newBackoff()
	for {
		content, retryAfter, err := s.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		handle(content, err)
		delay := wait.Jitter(s.interval, jitter)
		if err == nil {
			backoff = s.newBackoff()
		} else {
			delay = max(backoff.Step(), min(retryAfter, maxRetryDelay))
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Source) newBackoff() wait.Backoff {
	return wait.Backoff{Duration: s.minRetryDelay, Factor: 2, Jitter: jitter, Steps: 100, Cap: maxRetryDelay}
}

// read returns also how long the server wants the client to wait.
func (s *Source) read(ctx context.Context) (_ source.Content, retryAfter time.Duration, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return source.Content{}, 0, fmt.Errorf("read the source: %w", withoutURL(err))
	}
	req.Header.Set("Accept", "application/yaml, application/json, text/plain;q=0.9, */*;q=0.1")
	if s.last != nil {
		setUnlessEmpty(req.Header, "If-None-Match", s.last.etag)
		setUnlessEmpty(req.Header, "If-Modified-Since", s.last.lastModified)
	}
	got, err := s.client.Do(req)
	if err != nil {
		return source.Content{}, 0, fmt.Errorf("read the source: %w", withoutURL(err))
	}
	defer got.Body.Close()
	switch {
	case got.StatusCode == http.StatusNotModified && s.last != nil:
		return s.last.content, 0, nil
	case got.StatusCode != http.StatusOK:
		return source.Content{}, parseRetryAfter(got.Header), fmt.Errorf("read the source: the server answers with %d %s", got.StatusCode, http.StatusText(got.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(got.Body, source.MaxBytes+1))
	if err == nil && len(data) > source.MaxBytes {
		err = fmt.Errorf("the response is larger than %d bytes", source.MaxBytes)
	}
	if err != nil {
		return source.Content{}, 0, fmt.Errorf("read the source: %w", err)
	}
	pods, err := manifest.Parse(data, source.MaxPods)
	if errors.Is(err, manifest.ErrEmpty) {
		err = errors.New("the response is empty; to have no Pods, answer with a PodList without items")
	}
	if err != nil {
		return source.Content{}, 0, fmt.Errorf("read the source: %w", err)
	}
	s.last = &response{
		etag:         got.Header.Get("ETag"),
		lastModified: got.Header.Get("Last-Modified"),
		content:      source.Content{Files: map[string]source.Manifest{"": {Pods: pods}}},
	}
	return s.last.content, 0, nil
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

func parseRetryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds), maxRetryDelay/time.Second) * time.Second
}

// withoutURL returns the cause of an error of a request. The URL can have a secret in its
// query.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return urlError.Err
	}
	return err
}
