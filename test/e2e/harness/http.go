// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// HTTP sends plain requests to the server.
type HTTP struct {
	host   string
	client *http.Client
}

// HTTP returns a plain client with all rights. It does not undo compression.
func (b *Borough) HTTP(t testing.TB) HTTP { return NewHTTP(t, b.Config(t, "admin")) }

// NewHTTP returns a plain client with the identity that the configuration has.
func NewHTTP(t testing.TB, config *rest.Config) HTTP {
	t.Helper()
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	config.Timeout = 60 * time.Second
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("make an HTTP client: %v", err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return HTTP{config.Host, client}
}

// Answer is the answer to a request.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Status is the answer read as a Status; the zero Status if it is none.
func (a Answer) Status() metav1.Status {
	var status metav1.Status
	if json.Unmarshal(a.Body, &status) != nil || status.Kind != "Status" {
		return metav1.Status{}
	}
	return status
}

// JSON decodes the body into a value, and fails the test if it can't.
func (a Answer) JSON(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("decode the answer: %v\n%s", err, a.Body)
	}
}

func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Code, a.Body) }

// Do sends a request and returns the whole answer. The headers are pairs of name
// and value. It fails the test only if there is no answer.
func (h HTTP) Do(t testing.TB, method, path string, body []byte, headers ...string) Answer {
	t.Helper()
	response := h.Open(t, method, path, body, headers...)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return Answer{response.StatusCode, response.Header, data}
}

// Open sends a request and returns the answer with its body yet to be read, as
// a watch wants it. The test's context ends it.
func (h HTTP) Open(t testing.TB, method, path string, body []byte, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, h.host+path, bytes.NewReader(body))
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
