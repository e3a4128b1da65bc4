// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"context"
	"net/http"
	"strconv"
)

// responseWriter has the methods of the one of an HTTP/2 server that the library
// requires: without CloseNotify it would not let handlers flush.
type responseWriter struct {
	ctx    context.Context // ends with the stream
	req    *http.Request   // that of the client
	header http.Header
	body   *stream
	// started gets the response when its header is complete.
	started chan *http.Response
	wrote   bool // the header
}

func (w *responseWriter) Header() http.Header { return w.header }

func (w *responseWriter) WriteHeader(code int) {
	// Clients do not wait for informational responses.
	if w.wrote || code < http.StatusOK {
		return
	}
	w.wrote = true
	w.started <- &http.Response{
		Status:        strconv.Itoa(code) + " " + http.StatusText(code),
		StatusCode:    code,
		Proto:         "HTTP/2.0",
		ProtoMajor:    2,
		Header:        w.header.Clone(),
		Body:          w.body,
		ContentLength: -1,
		Request:       w.req,
	}
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.write(p)
}

func (w *responseWriter) Flush() {
	w.WriteHeader(http.StatusOK)
	w.body.flush()
}

func (w *responseWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { closed <- true })
	return closed
}
