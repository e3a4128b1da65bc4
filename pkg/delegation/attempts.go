// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// maxSilence is how long the first attempt waits for a connection, and then for
// anything on that connection. It is less for a timeout that would leave no time to
// repeat the review.
const maxSilence = 3 * time.Second

// errNoConnection means that there was no connection in time.
var errNoConnection = errors.New("no connection to kube-apiserver in time")

// attempts sends reviews to the cluster. A review that gets no answer because its
// connection is closed, or stalls, is sent once more, on another connection. Reviews
// change nothing, so they can be repeated.
//
// A connection stalls if nothing at all is received on it. A cluster that answers
// slowly is not asked again: it answers the pings that the client sends, as package
// cmd/internal/command configures it.
type attempts struct {
	delegate http.RoundTripper
	dialer   *dialer
	silence  time.Duration
}

// newAttempts changes the config so that its client has its own connections, and
// returns what sends reviews with the delegate of that client.
func newAttempts(cluster *rest.Config, timeout time.Duration) func(delegate http.RoundTripper) *attempts {
	d := &dialer{dial: cluster.Dial, open: map[string]*connection{}}
	if d.dial == nil {
		// As in the library.
		d.dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	cluster.Dial = d.DialContext
	silence := maxSilence
	if timeout > 0 {
		silence = min(silence, timeout/3)
	}
	return func(delegate http.RoundTripper) *attempts {
		return &attempts{delegate: delegate, dialer: d, silence: silence}
	}
}

// send sends a review until the context of the request ends.
func (a *attempts) send(req *http.Request, body []byte) (*answer, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	var connected atomic.Bool
	used := make(chan *connection, 1)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		connected.Store(true)
		c := a.dialer.find(info.Conn)
		if c == nil {
			return // it is closed, so the attempt fails
		}
		select {
		case used <- c:
		default: // the transport reports the same connection twice
		}
	}})
	go a.watch(ctx, used, cancel)
	first, err := a.try(req.WithContext(ctx), body)
	switch {
	case err == nil || req.Context().Err() != nil:
		return first, err
	case !connected.Load() && !errors.Is(context.Cause(ctx), errNoConnection):
		return nil, err // of dialing, which would fail again
	}
	klog.FromContext(req.Context()).V(2).Info("A review got no answer, repeating it on another connection", "err", err)
	return a.try(req, body)
}

// watch ends an attempt that has no connection in time, and closes one on which
// nothing is received. A new connection receives something in any case, so it is
// checked a second time.
func (a *attempts) watch(ctx context.Context, used <-chan *connection, cancel context.CancelCauseFunc) {
	timer := time.NewTimer(a.silence)
	defer timer.Stop()
	var c *connection
	var seen uint64 // reads on it
	for checks := 0; checks < 2; {
		select {
		case <-ctx.Done():
			return
		case c = <-used:
		case <-timer.C:
			switch {
			case c == nil:
				cancel(errNoConnection)
				return
			case c.reads.Load() == seen:
				_ = c.Close() // ends all reviews on it
				return
			}
			checks++
		}
		seen = c.reads.Load()
		timer.Reset(a.silence)
	}
}

// try sends a review once.
func (a *attempts) try(req *http.Request, body []byte) (*answer, error) {
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	response, err := a.delegate.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return readAnswer(response)
}

// answer is a response that can be given to several requests.
type answer struct {
	shared http.Response
	body   []byte
}

func readAnswer(response *http.Response) (*answer, error) {
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to a review: %w", err)
	}
	return &answer{*response, content}, nil
}

func (a *answer) response(req *http.Request) *http.Response {
	response := a.shared
	response.Header = a.shared.Header.Clone()
	response.Body = io.NopCloser(bytes.NewReader(a.body))
	response.Request = req
	return &response
}

// readReview returns the body of a review.
func readReview(req *http.Request) ([]byte, error) {
	defer req.Body.Close()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	return body, nil
}

// dialer finds the connections that it has dialed, which the transport wraps, by
// their addresses.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	open map[string]*connection
}

// DialContext dials.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialed, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: dialed}
	key := addresses(dialed)
	c.forget = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.open[key] == c {
			delete(d.open, key)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[key] = c
	return c, nil
}

// find returns nil for a connection that is closed.
func (d *dialer) find(wrapped net.Conn) *connection {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[addresses(wrapped)]
}

func addresses(c net.Conn) string { return c.LocalAddr().String() + " " + c.RemoteAddr().String() }

// connection counts the reads that received something.
type connection struct {
	net.Conn
	forget func()
	reads  atomic.Uint64
}

func (c *connection) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}

// Close closes the connection.
func (c *connection) Close() error {
	c.forget()
	return c.Conn.Close()
}
