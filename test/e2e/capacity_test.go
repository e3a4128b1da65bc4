// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
)

var (
	watches     = flag.Int("watches", 300, "number of watches that TestManyWatches opens as one user")
	connections = flag.Int("connections", 100, "number of connections that TestManyConnections opens")
)

// sendWithoutBody sends a request until the server handles it and waits for its body. The
// function that it returns sends the body, and returns the response.
func sendWithoutBody(t *testing.T, client *http.Client, method, url string) (end func(body string) harness.Answer) {
	t.Helper()
	type result struct {
		answer harness.Answer
		err    error
	}
	// The server sends 100 Continue once it handles the request.
	arrived, answered := make(chan struct{}), make(chan result, 1)
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(arrived) }})
	body, rest := io.Pipe()
	request, err := http.NewRequestWithContext(trace, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", asJSON)
	request.Header.Set("Expect", "100-continue")
	go func() {
		response, err := client.Do(request)
		if err != nil {
			answered <- result{err: err}
			return
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		answered <- result{harness.Answer{Code: response.StatusCode, Header: response.Header, Body: content}, err}
	}()
	select {
	case <-arrived:
	case early := <-answered:
		t.Fatalf("the server responded before the body of the request ended: %v, error %v", early.answer, early.err)
	}
	return func(body string) harness.Answer {
		t.Helper()
		go func() {
			_, _ = io.WriteString(rest, body) // fails if the server does not read it
			_ = rest.Close()
		}()
		end := <-answered
		if end.err != nil {
			t.Errorf("%s %s: %v", method, url, end.err)
		}
		return end.answer
	}
}

// TestRequestsInFlight reaches the limit for mutating requests with requests
// whose bodies do not end.
func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	const limit = 2
	if err := b.StartServer(t.Context(), "--max-requests-inflight="+strconv.Itoa(limit), "--max-mutating-requests-inflight="+strconv.Itoa(limit)); err != nil {
		t.Fatal(err)
	}
	config := b.Config(t, "controller")
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	user, admin := harness.NewHTTP(t, config), b.HTTP(t)
	const path = api + "/namespaces/absent/finalize"

	var ends []func(body string) harness.Answer
	for range limit {
		ends = append(ends, sendWithoutBody(t, client, http.MethodPut, config.Host+path))
	}
	rejected := user.Do(t, http.MethodPut, path, []byte("{}"))
	if rejected.Code != http.StatusTooManyRequests {
		t.Errorf("with %d writes in flight, one more: got %v, want 429", limit, rejected)
	}
	if rejected.Header.Get("Retry-After") == "" {
		t.Error("the 429 has no Retry-After")
	}
	wantAnswer(t, user.Do(t, http.MethodGet, api+"/namespaces", nil), http.StatusOK) // reads are counted separately
	if answer := admin.Do(t, http.MethodPut, path, []byte("{}")); answer.Code == http.StatusTooManyRequests {
		t.Errorf("system:masters: got %v", answer)
	}

	for _, end := range ends {
		end("")
	}
	if answer := user.Do(t, http.MethodPut, path, []byte("{}")); answer.Code == http.StatusTooManyRequests {
		t.Errorf("with no write in flight: got %v", answer)
	}

	// A watch is not counted after it has begun.
	for range 2 * limit {
		response := user.Open(t, http.MethodGet, api+"/namespaces?watch=true", nil)
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("watch: got %s", response.Status)
		}
	}
	wantAnswer(t, user.Do(t, http.MethodGet, api+"/namespaces", nil), http.StatusOK)
}

// TestManyWatches opens watches as one user, whose number is not limited, and
// logs the memory that they need.
func TestManyWatches(t *testing.T) {
	t.Parallel()
	for resource, object := range map[string]string{
		"pods":           `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		"resourcequotas": `{"metadata":{"name":"q"}}`, // whose watches are watches of etcd
	} {
		t.Run(resource, func(t *testing.T) {
			b := harness.New(t)
			if err := b.StartServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			user, admin := harness.NewHTTP(t, b.Config(t, "controller")), b.HTTP(t)
			before := memory(t, b)
			opened := make([]*http.Response, *watches)
			for i := range opened {
				opened[i] = user.Open(t, http.MethodGet, api+"/"+resource+"?watch=true", nil)
				defer opened[i].Body.Close()
				if opened[i].StatusCode != http.StatusOK {
					t.Fatalf("watch %d: got %s", i, opened[i].Status)
				}
			}
			after := memory(t, b)
			wantAnswer(t, admin.Do(t, http.MethodPost, api+"/namespaces/default/"+resource, []byte(object), "Content-Type", "application/json"), http.StatusCreated)
			for i, response := range opened {
				line, err := bufio.NewReader(response.Body).ReadString('\n')
				if err != nil || !strings.Contains(line, "ADDED") {
					t.Fatalf("watch %d: got %q, %v", i, line, err)
				}
			}
			t.Logf("%d watches: %.0f KiB each", *watches, float64(after-before)/float64(*watches))
			t.Logf("with an event delivered to each: %.0f KiB each", float64(memory(t, b)-before)/float64(*watches))
		})
	}
}

// TestManyConnections opens anonymous connections, whose number is limited only
// by file descriptors, and logs the memory that they need.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := memory(t, b)
	for i := range *connections {
		//nolint:gosec // the test sends nothing secret
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.Port), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("connection %d: got %v, %v", i, response, err)
		}
		_ = response.Body.Close()
	}
	t.Logf("%d idle connections: %.0f KiB each", *connections, float64(memory(t, b)-before)/float64(*connections))
	wantAnswer(t, b.HTTP(t).Do(t, http.MethodGet, api+"/namespaces", nil), http.StatusOK)
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// memory returns the resident memory of a server in KiB; 0 without /proc.
func memory(t *testing.T, b *harness.Borough) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Server.PID()))
	if err != nil {
		return 0
	}
	size, err := strconv.Atoi(string(resident.FindSubmatch(status)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return size
}
