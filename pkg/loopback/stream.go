// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxBuffered bounds what is written and not read yet. It is large enough for the
// handler of a watch to continue while the client handles an event.
const maxBuffered = 64 << 10

var errBodyClosed = errors.New("the body of the response is closed")

// stream is the body of a response: the handler writes, the client reads. What is
// written can be read when it is flushed, so that the client wakes up once for an
// event of a watch and not for each of its parts.
type stream struct {
	cancel func() // ends the context of the handler

	mu       sync.Mutex
	changed  sync.Cond
	buffered bytes.Buffer
	flushed  bool  // buffered is not empty and can be read
	err      error // why the stream has ended
}

func newStream(cancel func()) *stream {
	s := &stream{cancel: cancel}
	s.changed.L = &s.mu
	return s
}

// write waits while the buffer is full.
func (s *stream) write(p []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.err != nil {
			return written, io.ErrClosedPipe
		}
		n := min(len(p), maxBuffered-s.buffered.Len())
		s.buffered.Write(p[:n])
		written, p = written+n, p[n:]
		if len(p) == 0 {
			return written, nil
		}
		s.flushed = true
		s.changed.Broadcast()
		s.changed.Wait()
	}
}

func (s *stream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushed = s.buffered.Len() > 0
	s.changed.Broadcast()
}

// end ends the stream and the context of the handler, unless they have ended. The
// client reads what is buffered and then err.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
	s.cancel()
}

func (s *stream) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.flushed && s.err == nil {
		s.changed.Wait()
	}
	if s.buffered.Len() == 0 {
		return 0, s.err
	}
	n, err := s.buffered.Read(p)
	s.flushed = s.flushed && s.buffered.Len() > 0
	s.changed.Broadcast()
	return n, err
}

// Close implements io.Closer. It ends the context of the handler.
func (s *stream) Close() error {
	s.end(errBodyClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffered.Reset()
	s.flushed = false
	return nil
}
