// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest

import (
	"errors"
	"net"
	"sync"
)

// listener can be cut off: then the port and all connections are closed without
// notice to the clients, as when a process is killed.
type listener struct {
	net.Listener
	closed chan struct{}
	close  func() error

	mu    sync.Mutex
	conns map[*conn]struct{} // nil once cut off
}

func listen(address string) (*listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	closed := make(chan struct{})
	return &listener{
		Listener: l,
		closed:   closed,
		close: sync.OnceValue(func() error {
			close(closed)
			if err := l.Close(); !errors.Is(err, net.ErrClosed) { // by cutOff
				return err
			}
			return nil
		}),
		conns: map[*conn]struct{}{},
	}, nil
}

// Accept implements net.Listener. After cutOff it returns when the listener is closed:
// the library treats net.ErrClosed before that as a bug, and panics. After other errors, as
// when there are too many open files, it tries again.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		if errors.Is(err, net.ErrClosed) {
			<-l.closed
		}
		return nil, err
	}
	c := &conn{Conn: accepted, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		_ = accepted.Close() // the next Accept waits
	} else {
		l.conns[c] = struct{}{}
	}
	return c, nil
}

// Close implements net.Listener. Only the first call has an effect.
func (l *listener) Close() error { return l.close() }

func (l *listener) cutOff() {
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	_ = l.Listener.Close() // it is open, or Close has returned the error
	for c := range conns {
		_ = c.Conn.Close() // the other end may have closed it
	}
}

// conn is an open connection.
type conn struct {
	net.Conn
	of *listener
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
