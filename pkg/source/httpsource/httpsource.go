// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpsource reads Pods from a URL, and polls it.
package httpsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/source/manifest"
)

const (
	// minRetryDelay and maxRetryDelay bound the time between a failed request and the
	// next. It doubles from one to the other.
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
	// jitter is the largest part that is added to the time between requests, so that many
	// nodes do not send theirs at the same moment.
	jitter = 0.2
	// minModifiedAge is how old content must be for its validators to be used.
	minModifiedAge = 5 * time.Second
)

// Options are how a URL is read. The files are read for each request.
type Options struct {
	// CAFile has the CAs that sign the certificate of the server, in PEM. If empty, those
	// of the system.
	CAFile string
	// CertFile and KeyFile have the client certificate and its key, in PEM. If empty, none.
	CertFile, KeyFile string
	// TokenFile has a bearer token. If empty, none.
	TokenFile string
	// Interval is the time between two requests.
	Interval time.Duration
	// Timeout bounds a request with its response.
	Timeout time.Duration
}

// Source is a URL.
type Source struct {
	url     string
	options Options
	// after is time.After, except in tests.
	after func(time.Duration) <-chan time.Time

	mu   sync.Mutex
	last *response // the last one that could be read
}

var _ source.Reader = (*Source)(nil)

// response is a response with its validators (RFC 9110, section 8.8).
type response struct {
	etag, lastModified string
	content            source.Content
}

// New returns the source at an HTTPS URL. It returns an error if a file of the options cannot
// be used.
func New(location string, options Options) (*Source, error) {
	_, err := newClient(options)
	if err == nil {
		_, err = options.token()
	}
	if err != nil {
		return nil, fmt.Errorf("set up the client of the source: %w", err)
	}
	return &Source{url: location, options: options, after: time.After}, nil
}

// Read implements source.Reader.
func (s *Source) Read(ctx context.Context) (source.Content, error) {
	content, _, err := s.read(ctx)
	return content, err
}

// Run implements source.Reader. It polls.
func (s *Source) Run(ctx context.Context, handle func(source.Content, error)) error {
	backoff := newBackoff()
	for {
		content, retryAfter, err := s.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		handle(content, err)
		delay := s.options.Interval
		if err == nil {
			backoff = newBackoff()
		} else {
			delay = max(backoff.Step(), retryAfter)
		}
		select {
		case <-s.after(wait.Jitter(delay, jitter)):
		case <-ctx.Done():
			return nil
		}
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: minRetryDelay, Factor: 2, Steps: 100, Cap: maxRetryDelay}
}

// read returns also how long the server wants the client to wait.
func (s *Source) read(ctx context.Context) (_ source.Content, retryAfter time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the source: %w", cause(err, s.options.Timeout))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	client, err := newClient(s.options)
	if err != nil {
		return source.Content{}, 0, err
	}
	req, err := s.newRequest(ctx)
	if err != nil {
		return source.Content{}, 0, err
	}
	got, err := client.Do(req)
	if err != nil {
		return source.Content{}, 0, err
	}
	defer got.Body.Close()
	conditional := req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Modified-Since") != ""
	switch {
	case got.StatusCode == http.StatusNotModified && conditional:
		return s.last.content, 0, nil
	case got.StatusCode != http.StatusOK:
		return source.Content{}, parseRetryAfter(got.Header), fmt.Errorf("the server answers with %d %s", got.StatusCode, http.StatusText(got.StatusCode))
	}
	content, err := parse(got)
	if err != nil {
		return source.Content{}, 0, err
	}
	s.last = &response{content: content}
	s.last.etag, s.last.lastModified = validators(got.Header)
	return content, 0, nil
}

func (s *Source) newRequest(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	token, err := s.options.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("User-Agent", "borough-source")
	req.Header.Set("Accept", "application/yaml, application/json, text/plain;q=0.9, */*;q=0.1")
	if s.last != nil {
		setUnlessEmpty(req.Header, "If-None-Match", s.last.etag)
		setUnlessEmpty(req.Header, "If-Modified-Since", s.last.lastModified)
	}
	return req, nil
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

// parse returns what a response contains.
func parse(got *http.Response) (source.Content, error) {
	// Otherwise the end of the connection is that of the response, also when the server or a
	// proxy has crashed.
	if got.ContentLength < 0 && len(got.TransferEncoding) == 0 && !got.Uncompressed {
		return source.Content{}, errors.New("the response must have a Content-Length or be chunked: otherwise a part of it looks complete")
	}
	data, err := io.ReadAll(io.LimitReader(got.Body, source.MaxBytes+1))
	if err == nil {
		// A server that notices that the request has ended can end its response too, which
		// then is not complete and looks as if it were.
		err = got.Request.Context().Err()
	}
	if err != nil {
		return source.Content{}, err
	}
	if len(data) > source.MaxBytes {
		return source.Content{}, fmt.Errorf("the response is larger than %d bytes", source.MaxBytes)
	}
	pods, blank, err := manifest.Parse(data, manifest.NewRemaining())
	// A program that fails can answer with a blank page, a comment or null.
	if errors.Is(err, manifest.ErrEmpty) || blank {
		return source.Content{}, errors.New("the response is empty; to have no Pods, answer with a PodList without items")
	}
	if err != nil {
		mediaType, _, _ := mime.ParseMediaType(got.Header.Get("Content-Type"))
		return source.Content{}, fmt.Errorf("parse the response, which has the type %.100q: %w", mediaType, err)
	}
	return source.Content{Files: map[string]source.Manifest{"": {Pods: pods}}}, nil
}

// validators returns those of a response. There are none if the content was modified just
// before: many servers make both from the time in seconds, and another change in the same
// second keeps them.
func validators(header http.Header) (etag, lastModified string) {
	if modified, err := http.ParseTime(header.Get("Last-Modified")); err == nil {
		if date, err := http.ParseTime(header.Get("Date")); err != nil || date.Sub(modified) < minModifiedAge {
			return "", ""
		}
	}
	return header.Get("ETag"), header.Get("Last-Modified")
}

// parseRetryAfter returns the time of a header Retry-After, which is a number of seconds or
// a date. It is at most maxRetryDelay.
func parseRetryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), int(maxRetryDelay/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date")) // the clocks can differ
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryDelay)
}
