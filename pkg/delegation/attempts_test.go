// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestClosedConnection sends a review on a connection that is closed at the same moment.
func TestClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, _ := net.Pipe()
		defer closed.Close()
		sent := 0
		a := &attempts{dialer: &dialer{open: map[string]*connection{}}, silence: maxSilence, delegate: roundTripper(func(req *http.Request) (*http.Response, error) {
			sent++
			if sent > 1 {
				return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader("allowed"))}, nil
			}
			httptrace.ContextClientTrace(req.Context()).GotConn(httptrace.GotConnInfo{Conn: closed, Reused: true})
			synctest.Wait() // for what follows the connection
			return nil, io.ErrUnexpectedEOF
		})}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://cluster.example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := a.send(req, nil)
		if err != nil || string(answer.body) != "allowed" || sent != 2 {
			t.Errorf("got %v, error %v, sent %d times", answer, err, sent)
		}
	})
}
