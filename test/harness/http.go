// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// requestTimeout is for a request and the whole response.
	requestTimeout = time.Minute
	// watchTimeout ends a watch if an event that a test waits for is missing.
	watchTimeout = 10 * time.Minute
)

// HTTP sends HTTP requests to the server.
type HTTP struct {
	host   string
	client *http.Client
}

// HTTP returns an HTTP client that authenticates as an administrator. It does not
// decompress responses.
func (b *Borough) HTTP(t testing.TB) HTTP { return NewHTTP(t, b.Config(t, "admin")) }

// NewHTTP returns an HTTP client for the configuration. It does not decompress
// responses.
func NewHTTP(t testing.TB, config *rest.Config) HTTP {
	t.Helper()
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	config.Timeout = watchTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("create an HTTP client: %v", err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return HTTP{config.Host, client}
}

// Answer is the response to a request.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Status decodes the body as a Status. It returns the zero Status if the body is
// something else.
func (a Answer) Status() metav1.Status {
	var status metav1.Status
	if json.Unmarshal(a.Body, &status) != nil || status.Kind != "Status" {
		return metav1.Status{}
	}
	return status
}

// JSON decodes the body into a value. It fails the test on an error.
func (a Answer) JSON(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("decode the response: %v\n%s", err, a.Body)
	}
}

func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Code, a.Body) }

// Do sends a request and returns the whole response. The headers are pairs of
// name and value. It fails the test only if there is no response.
func (h HTTP) Do(t testing.TB, method, path string, body []byte, headers ...string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	response := h.open(ctx, t, method, path, body, headers...)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read the response: %v", method, path, err)
	}
	return Answer{response.StatusCode, response.Header, data}
}

// Open sends a request and returns the response before its body is read, for
// example for a watch. The test's context cancels the request.
func (h HTTP) Open(t testing.TB, method, path string, body []byte, headers ...string) *http.Response {
	t.Helper()
	return h.open(t.Context(), t, method, path, body, headers...)
}

func (h HTTP) open(ctx context.Context, t testing.TB, method, path string, body []byte, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, h.host+path, bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return response
}
