// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// maxReceived is how many bytes the client of a watch over a WebSocket may send: it has nothing
// to send but frames that keep the connection open.
const maxReceived = 64 << 10

// withUpgradeDeadline returns a writer that keeps the deadline for writes when the connection is
// upgraded to a WebSocket, and ends it if the client sends more than maxReceived bytes. The
// library has no deadline for WebSockets, and reads messages of up to 32 MiB into memory.
//
// It returns the same writer if that cannot upgrade, as those of HTTP/2.
func withUpgradeDeadline(w http.ResponseWriter, deadline time.Time) http.ResponseWriter {
	inner, ok := w.(hijackableWriter)
	if !ok {
		return w
	}
	return &upgradeWriter{inner, deadline}
}

// hijackableWriter is what the library requires of a writer of HTTP/1.
type hijackableWriter interface {
	http.ResponseWriter
	http.Hijacker
	responsewriter.CloseNotifierFlusher
}

type upgradeWriter struct {
	hijackableWriter
	deadline time.Time
}

// Unwrap returns the writer for http.ResponseController.
func (w *upgradeWriter) Unwrap() http.ResponseWriter { return w.hijackableWriter }

// Hijack implements http.Hijacker.
func (w *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.hijackableWriter.Hijack()
	if err != nil {
		return nil, nil, err
	}
	// The server removes it from connections that it hands over.
	if err := conn.SetWriteDeadline(w.deadline); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, bufio.NewReadWriter(bufio.NewReader(io.LimitReader(buffered.Reader, maxReceived)), buffered.Writer), nil
}
