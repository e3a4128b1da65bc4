// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tcpproxy is a proxy of TCP connections, which can refuse connections and
// stall those that are open.
package tcpproxy

import (
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/borough-io/borough/test/harness"
)

// Proxy forwards connections to a server.
type Proxy struct {
	port int

	mu       sync.Mutex
	server   string       // HOST:PORT
	listener net.Listener // nil while connections are refused
	hangs    bool
	open     map[*connection]bool
	ended    sync.WaitGroup
}

// New starts a proxy on a port of 127.0.0.1.
func New(server string) (*Proxy, error) {
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	p := &Proxy{port: port, server: server, open: map[*connection]bool{}}
	return p, p.Serve()
}

// Port returns the port of the proxy.
func (p *Proxy) Port() int { return p.port }

// Redirect forwards new connections to another server. Those that are open stay.
func (p *Proxy) Redirect(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

// Serve forwards connections, on the same port as before.
func (p *Proxy) Serve() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangs = false
	if p.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)))
	if err != nil {
		return fmt.Errorf("listen for clients of %s: %w", p.server, err)
	}
	p.listener = listener
	p.ended.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			p.accept(client)
		}
	})
	return nil
}

// Refuse closes all connections and refuses new ones, until Serve.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Drop()
	p.ended.Wait()
}

// Drop closes all connections.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.close()
	}
}

// Stall forwards nothing more on the connections that are open, and does not close
// them.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.stall()
	}
}

// Hang is Stall for new connections too, until Serve.
func (p *Proxy) Hang() {
	p.mu.Lock()
	p.hangs = true
	p.mu.Unlock()
	p.Stall()
}

// Close closes the proxy and its connections.
func (p *Proxy) Close() { p.Refuse() }

func (p *Proxy) accept(client net.Conn) {
	p.mu.Lock()
	address := p.server
	p.mu.Unlock()
	server, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &connection{client: client, server: server, stalled: make(chan struct{}), closed: make(chan struct{})}
	c.stall = sync.OnceFunc(func() { close(c.stalled) })
	c.close = sync.OnceFunc(func() {
		close(c.closed)
		_ = client.Close()
		_ = server.Close()
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		c.close()
		return
	}
	p.open[c] = true
	if p.hangs {
		c.stall()
	}
	p.ended.Go(func() {
		var copies sync.WaitGroup
		copies.Go(func() { c.copy(server, client) })
		copies.Go(func() { c.copy(client, server) })
		copies.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
	})
}

type connection struct {
	client, server  net.Conn
	stalled, closed chan struct{}
	stall, close    func()
}

// copy forwards data in one direction until the connection is closed.
func (c *connection) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-c.stalled:
			<-c.closed
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				c.close()
				return
			}
		}
		if err != nil {
			c.close()
			return
		}
	}
}
