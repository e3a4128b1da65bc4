// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/klog/v2"

	"github.com/borough-io/borough/test/attack"
	"github.com/borough-io/borough/test/poll"
)

// FuzzRequests sends random requests, half of them patches, to the handlers of a
// real server that runs in the process of the test: decoding, defaults,
// admission, validation and the four types of patches are all passed.
func FuzzRequests(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	send := startInProcess(f)
	for _, request := range attack.Prepare("attacked") {
		if answer := send(request); answer.Code != http.StatusCreated {
			f.Fatalf("%s: got %d %s", request, answer.Code, answer.Body)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		request := attack.NewRandom("attacked", seed).Request(0)
		if answer := send(request); answer.Code >= http.StatusInternalServerError {
			t.Errorf("%s: got %d %s\nbody: %q", request, answer.Code, answer.Body, request.Body)
		}
	})
}

// startInProcess starts a standalone server and returns how to send it requests
// as an administrator, past the network and TLS.
func startInProcess(tb testing.TB) (send func(attack.Request) *httptest.ResponseRecorder) {
	tb.Helper()
	klog.SetOutput(io.Discard) // it logs what it rejects
	klog.LogToStderr(false)
	ctx, cancel := context.WithCancel(context.Background())
	dir := tb.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		tb.Fatal(err)
	}
	o, err := run(tb, "--standalone", "--data-dir="+dir, "--secure-port="+strconv.Itoa(port))
	if err != nil {
		tb.Fatal(err)
	}
	deps, err := o.Open(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	config, err := o.Config(deps)
	if err != nil {
		tb.Fatal(err)
	}
	server, err := config.Complete().New()
	if err != nil {
		tb.Fatal(err)
	}
	prepared := server.PrepareRun()
	ended := make(chan error, 1)
	go func() { ended <- prepared.RunWithContext(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("the server ended with %v", err)
		}
		if err := deps.Close(); err != nil {
			tb.Errorf("close the dependencies: %v", err)
		}
	})

	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "pki", "admin.crt"), filepath.Join(dir, "pki", "admin.key"))
	if err != nil {
		tb.Fatal(err)
	}
	connection := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}}
	send = func(r attack.Request) *httptest.ResponseRecorder {
		request := httptest.NewRequest(r.Method, r.Path, bytes.NewReader(r.Body))
		request.Header, request.TLS = r.Header.Clone(), connection
		if request.Header == nil {
			request.Header = http.Header{}
		}
		answer := httptest.NewRecorder()
		server.Handler.ServeHTTP(answer, request)
		return answer
	}
	poll.Eventually(tb, func() string {
		if answer := send(attack.Request{Method: http.MethodGet, Path: "/readyz"}); answer.Code != http.StatusOK {
			return answer.Body.String()
		}
		return ""
	})
	return send
}
