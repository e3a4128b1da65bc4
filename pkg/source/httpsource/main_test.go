// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package httpsource

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/certs"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// discard is for the errors that a server logs because of its clients.
var discard = log.New(io.Discard, "", 0)

// server is an HTTPS server whose handler a test can replace.
type server struct {
	*httptest.Server
	ca *certs.Authority

	mu       sync.Mutex
	handler  http.HandlerFunc
	requests []*http.Request
}

// newServer starts a server.
func newServer(t *testing.T, modify ...func(*tls.Config)) *server {
	t.Helper()
	ca := certs.NewAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.Server(t, time.Now().Add(time.Hour))}}
	for _, f := range modify {
		f(config)
	}
	s := &server{ca: ca}
	s.start(t, "127.0.0.1:0", config)
	return s
}

// start starts the server, again after a Close.
func (s *server) start(t *testing.T, address string, config *tls.Config) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = &httptest.Server{Listener: listener, TLS: config, Config: &http.Server{Handler: s, ErrorLog: discard}}
	s.StartTLS()
	t.Cleanup(s.Close)
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, req)
	handler := s.handler
	s.mu.Unlock()
	handler(w, req)
}

// serve sets the handler of the requests to come.
func (s *server) serve(handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = handler
}

// received returns the requests since the last call.
func (s *server) received() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.requests = nil }()
	return s.requests
}

// options trusts the server.
func (s *server) options() Options {
	return Options{CAFile: s.ca.File, Interval: time.Minute, Timeout: time.Minute}
}

func newSource(t *testing.T, url string, options Options) *Source {
	t.Helper()
	s, err := New(url, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pods returns a manifest with a Pod of each name.
func pods(names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{}}`, name))
	}
	return `{"apiVersion":"v1","kind":"PodList","items":[` + strings.Join(items, ",") + `]}`
}

// answer answers with the manifest.
func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// wantPods reads the source, and checks which Pods it has.
func wantPods(t *testing.T, s *Source, want ...string) {
	t.Helper()
	content, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, content, want...)
}

func wantNames(t *testing.T, content source.Content, want ...string) {
	t.Helper()
	var got []string
	for file, m := range content.Files {
		if file != "" || m.Err != nil {
			t.Fatalf("got the file %q, error %v", file, m.Err)
		}
		for _, pod := range m.Pods {
			got = append(got, pod.GetName())
		}
	}
	if len(content.Files) != 1 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("got %d files with the Pods %q, want %q", len(content.Files), got, want)
	}
}

// wantError reads the source, and checks that nothing is read, with an error that begins so.
func wantError(t *testing.T, s *Source, want string) {
	t.Helper()
	content, err := s.Read(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "read the source: "+want) {
		t.Fatalf("got the error %v, want %q", err, want)
	}
	if content.Files != nil {
		t.Errorf("got %v with an error", content)
	}
}

// inFile writes a file and returns its path.
func inFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, content)
	return path
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
