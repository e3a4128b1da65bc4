// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback connects a server to itself: its clients call its handler in the
// process, without a network and TLS.
package loopback

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Transport is an http.RoundTripper that calls a handler. To the handler, requests look
// like those of an HTTP/2 connection from this machine without a client certificate.
// Trailers, informational responses and deadlines are not supported.
type Transport struct {
	handler atomic.Pointer[http.Handler]
}

// Serve begins to pass requests to the handler. Until then they fail.
func (t *Transport) Serve(handler http.Handler) { t.handler.Store(&handler) }

// ClientConfig returns the config of a client of the server, with a new token and
// without a limit on requests.
func (t *Transport) ClientConfig() *rest.Config {
	return &rest.Config{Host: "https://" + host, BearerToken: rand.Text(), QPS: -1, Transport: t}
}

const (
	host       = "localhost"
	remoteAddr = "127.0.0.1:0"
)

var errNotServing = errors.New("the server does not serve yet")

// RoundTrip implements http.RoundTripper. The handler runs until it returns, the
// context of the request ends or the body of the response is closed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, fmt.Errorf("read the body of the request: %w", err)
	}
	handler := t.handler.Load()
	if handler == nil {
		return nil, errNotServing
	}
	// The client may itself be part of a handler. Of its context only the end counts:
	// the values are those of another request.
	ctx, cancel := context.WithCancel(context.Background())
	out := newStream(cancel)
	w := &responseWriter{ctx: ctx, req: req, header: http.Header{}, body: out, started: make(chan *http.Response, 1)}
	stop := context.AfterFunc(req.Context(), func() { out.end(context.Cause(req.Context())) })
	go func() {
		defer stop()
		out.end(serve(*handler, w, serverRequest(ctx, req, body)))
	}()
	select {
	case response := <-w.started:
		return response, nil
	case <-ctx.Done():
	}
	// A short response has both started and ended.
	select {
	case response := <-w.started:
		return response, nil
	default:
		return nil, out.cause()
	}
}

// serve returns io.EOF, which ends the response, unless the handler panics.
func serve(handler http.Handler, w *responseWriter, req *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = http.ErrAbortHandler
		default:
			err = fmt.Errorf("panic in the handler of %s %s: %v\n%s", req.Method, req.URL.Path, p, debug.Stack())
		}
	}()
	handler.ServeHTTP(w, req)
	w.Flush()
	return io.EOF
}

// readBody reads the whole body, so that a handler that runs for longer than the
// client waits does not share it with the client. Those of Kubernetes' clients are in
// memory anyway.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

// serverRequest returns the request as the handler of a server gets it.
func serverRequest(ctx context.Context, req *http.Request, body []byte) *http.Request {
	return (&http.Request{
		Method:        req.Method,
		URL:           &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery},
		RequestURI:    req.URL.RequestURI(),
		Proto:         "HTTP/2.0",
		ProtoMajor:    2,
		Header:        req.Header.Clone(),
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Host:          host,
		RemoteAddr:    remoteAddr,
	}).WithContext(ctx)
}
