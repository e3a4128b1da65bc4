// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

// Network replaces the network of Services and Pods. It is an HTTP proxy
// through which kube-apiserver reaches aggregated API servers and admission
// webhooks (its egress selection "cluster"). For any address, it connects to
// the requested port on 127.0.0.1.
//
// An ExternalName Service for localhost would need no proxy, but Borough is not
// deployed with one, and it has only one backend. kube-apiserver rejects an
// EndpointSlice with a loopback address.
type Network struct {
	listener net.Listener

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// newNetwork starts the network on a Unix socket in the directory.
func newNetwork(dir string) (*Network, error) {
	// On TCP, kube-apiserver needs TLS: without a TLSConfig it panics.
	listener, err := net.Listen("unix", filepath.Join(dir, "network"))
	if err != nil {
		return nil, fmt.Errorf("start the network: %w", err)
	}
	n := &Network{listener: listener, conns: map[net.Conn]struct{}{}}
	server := &http.Server{Handler: n}
	go func() { _ = server.Serve(listener) }() // ends when the listener is closed
	return n, nil
}

// Disconnect closes all connections. New ones can be opened.
func (n *Network) Disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for conn := range n.conns {
		_ = conn.Close() // fails only if it is already closed
	}
}

func (n *Network) close() {
	_ = n.listener.Close() // fails only if it is already closed
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.Disconnect()
}

// keep registers a connection for Disconnect until it is dropped. It returns
// false if the network is closed.
func (n *Network) keep(conn net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.conns[conn] = struct{}{}
	}
	return !n.closed
}

func (n *Network) drop(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, conn)
	_ = conn.Close() // may already be closed
}

// ServeHTTP serves the method CONNECT.
func (n *Network) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
		return
	}
	_, port, err := net.SplitHostPort(req.URL.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	backend, err := (&net.Dialer{}).DialContext(req.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = backend.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer n.drop(backend)
	defer n.drop(client)
	if !n.keep(backend) || !n.keep(client) {
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// The tunnel ends when either direction ends.
	forward := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		_, _ = client.Close(), backend.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		forward(backend, buffered)
	}()
	forward(client, backend)
	<-done
}

// writeEgressConfig writes the configuration that makes kube-apiserver use the
// network.
func (n *Network) writeEgressConfig(path string) error {
	config := fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %s
`, n.listener.Addr())
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return fmt.Errorf("write the egress configuration: %w", err)
	}
	return nil
}
