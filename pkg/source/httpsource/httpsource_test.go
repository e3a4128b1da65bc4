// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package httpsource

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/borough-io/borough/pkg/source"
)

// raw answers with the bytes of a response, and closes the connection.
func raw(t *testing.T, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Error(err)
		}
	}
}

// cutOff answers with a part of a response in chunks.
func cutOff(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, text)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// zipped answers with so many times the text, compressed, and then the end.
func zipped(end, text string, times int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range times {
			if _, err := io.WriteString(z, text); err != nil {
				return // the client does not read all of it
			}
		}
		if _, err := io.WriteString(z, end); err == nil {
			_ = z.Close()
		}
	}
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, pods("not-to-be-read"))
	}
}

// TestFailures has a server fail in many ways between two responses. Each failure is an error,
// and what was read before, and its validators, remain.
func TestFailures(t *testing.T) {
	document := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec: {}\n"
	tests := map[string]struct {
		handler http.HandlerFunc
		timeout time.Duration
		want    string
	}{
		"not found":             {handler: status(404), want: "the server answers with 404 Not Found"},
		"unauthorized":          {handler: status(401), want: "the server answers with 401 Unauthorized"},
		"server error":          {handler: status(500), want: "the server answers with 500 Internal Server Error"},
		"unavailable":           {handler: status(503, "Retry-After", "10"), want: "the server answers with 503 Service Unavailable"},
		"no content":            {handler: raw(t, "HTTP/1.1 204 No Content\r\n\r\n"), want: "the server answers with 204 No Content"},
		"partial content":       {handler: status(206), want: "the server answers with 206 Partial Content"},
		"an error page":         {handler: answer("<!DOCTYPE html>\n<html><body>Down for maintenance</body></html>\n"), want: `parse the response, which has the type "text/html": document 1: `},
		"an error in JSON":      {handler: answer(`{"error":"down"}`), want: `parse the response, which has the type "text/plain": document 1: apiVersion`},
		"a Status":              {handler: answer(`{"apiVersion":"v1","kind":"Status","code":500}`), want: "parse the response"},
		"empty":                 {handler: answer(""), want: "the response is empty"},
		"blank":                 {handler: answer("\r\n\n  \n"), want: "the response is empty"},
		"null":                  {handler: answer("null"), want: "the response is empty"},
		"a comment":             {handler: answer("# error 500\n---\n"), want: "the response is empty"},
		"a comment on a List":   {handler: answer("# PodList for node-1 could not be rendered\n"), want: "the response is empty"},
		"null after List":       {handler: answer("# List\nnull\n"), want: "the response is empty"},
		"half a document":       {handler: answer(pods("a")[:60]), want: "parse the response"},
		"the same Pod twice":    {handler: answer(pods("a", "a")), want: "parse the response"},
		"shorter than promised": {handler: raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"+document), want: "the response is cut off"},
		"chunks cut off":        {handler: cutOff(document + "---\n"), want: "the response is cut off"},
		"of unknown length":     {handler: raw(t, "HTTP/1.0 200 OK\r\n\r\n"+document), want: "the response must have a Content-Length or be chunked"},
		"gzip cut off": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, document)
			_ = z.Flush() // and not Close
		}, want: "the response is cut off"},
		"gzip that is none": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, document)
		}, want: "gzip: invalid header"},
		"too large":       {handler: answer(strings.Repeat("#\n", source.MaxBytes)), want: fmt.Sprintf("the response is larger than %d bytes", source.MaxBytes)},
		"a gzip bomb":     {handler: zipped("", strings.Repeat(" ", 1<<20), 1<<10), want: fmt.Sprintf("the response is larger than %d bytes", source.MaxBytes)},
		"a YAML bomb":     {handler: answer(bomb()), want: "parse the response"},
		"not HTTP":        {handler: raw(t, "220 mail.example.com ESMTP\r\n"), want: "net/http: HTTP/1.x transport connection broken: malformed HTTP"},
		"no response":     {handler: raw(t, ""), want: "the server has closed the connection without a response"},
		"endless headers": {handler: endlessHeaders, want: "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded"},
		"slow headers":    {handler: untilCancelled, timeout: 50 * time.Millisecond, want: "there is no complete response within 50ms"},
		"a slow body":     {handler: slowBody(document), timeout: 50 * time.Millisecond, want: "there is no complete response within 50ms"},
		"another host":    {handler: redirect("https://localhost:1/"), want: "the server redirects to https://localhost:1, which is not followed"},
		"plain HTTP": {handler: func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://"+req.Host+"/", http.StatusFound)
		}, want: "the server redirects to http://127.0.0.1:"},
		"endless redirect": {handler: redirect("/"), want: "the server redirects more than 3 times"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			options := s.options()
			src := newSource(t, s.URL+"/pods?key=secret", options)
			const etag = `"1"`
			good := func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("ETag", etag)
				if req.Header.Get("If-None-Match") == etag {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				answer(pods("a", "b"))(w, req)
			}
			s.serve(good)
			before, err := src.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			s.serve(tc.handler)
			if tc.timeout != 0 {
				src.options.Timeout = tc.timeout
			}
			wantError(t, src, tc.want)
			_, first := src.Read(t.Context())
			_, second := src.Read(t.Context())
			if first == nil || second == nil || first.Error() != second.Error() {
				t.Errorf("got the errors %v and %v", first, second)
			}
			if strings.Contains(fmt.Sprint(first), "secret") {
				t.Errorf("the error has the query: %v", first)
			}
			wantNames(t, before, "a", "b")

			s.serve(good)
			src.options.Timeout = options.Timeout
			s.received()
			wantPods(t, src, "a", "b")
			if got := s.received()[0].Header.Get("If-None-Match"); got != etag {
				t.Errorf("got If-None-Match %q after the failure", got)
			}
		})
	}
}

// bomb returns YAML whose aliases stand for 10 to the power of 9 strings.
func bomb() string {
	text := "a0: &a0 [x]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	return text
}

func endlessHeaders(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	for line := "X: " + strings.Repeat("x", 1000) + "\r\n"; err == nil; {
		_, err = io.WriteString(conn, line)
	}
}

// untilCancelled does not answer.
func untilCancelled(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

func slowBody(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, text)
		w.(http.Flusher).Flush()
		untilCancelled(w, req)
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, to, http.StatusFound) }
}

func TestReads(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    []string
	}{
		"a list":             {handler: answer(pods("a", "b")), want: []string{"a", "b"}},
		"a list without any": {handler: answer(pods())},
		"an empty List":      {handler: answer("apiVersion: v1\nkind: List\n")},
		"compressed":         {handler: zipped(pods("a"), "\n", 1000), want: []string{"a"}},
		"as large as allowed": {
			handler: answer(strings.Repeat(" ", source.MaxBytes-len(pods("a"))) + pods("a")),
			want:    []string{"a"},
		},
		"redirected": {
			handler: func(w http.ResponseWriter, req *http.Request) {
				if steps := req.URL.Query().Get("steps"); steps != "xxx" {
					http.Redirect(w, req, "/other?steps="+steps+"x", http.StatusFound)
					return
				}
				answer(pods("a"))(w, req)
			},
			want: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.serve(tc.handler)
			wantPods(t, newSource(t, s.URL, s.options()), tc.want...)
		})
	}
}

// TestValidators checks which requests are conditional, and what a response 304 means.
func TestValidators(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) string { return now.Add(-ago).UTC().Format(http.TimeFormat) }
	for name, tc := range map[string]struct {
		headers             []string
		noneMatch, modified string
	}{
		"none":                         {},
		"ETag":                         {headers: []string{"ETag", `"1"`}, noneMatch: `"1"`},
		"weak ETag":                    {headers: []string{"ETag", `W/"1"`}, noneMatch: `W/"1"`},
		"Last-Modified":                {headers: []string{"Last-Modified", at(time.Hour), "Date", at(0)}, modified: at(time.Hour)},
		"both":                         {headers: []string{"ETag", `"1"`, "Last-Modified", at(time.Hour), "Date", at(0)}, noneMatch: `"1"`, modified: at(time.Hour)},
		"Last-Modified, just before":   {headers: []string{"Last-Modified", at(time.Second), "Date", at(0)}},
		"both, just before":            {headers: []string{"ETag", `"1"`, "Last-Modified", at(0), "Date", at(0)}},
		"Last-Modified, later":         {headers: []string{"Last-Modified", at(-time.Hour), "Date", at(0)}},
		"Last-Modified, no valid Date": {headers: []string{"Last-Modified", at(time.Hour), "Date", "today"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.serve(func(w http.ResponseWriter, req *http.Request) {
				for i := 0; i < len(tc.headers); i += 2 {
					w.Header().Set(tc.headers[i], tc.headers[i+1])
				}
				answer(pods("a"))(w, req)
			})
			src := newSource(t, s.URL, s.options())
			wantPods(t, src, "a")
			s.received()
			conditional := tc.noneMatch != "" || tc.modified != ""
			s.serve(status(http.StatusNotModified))
			if conditional {
				wantPods(t, src, "a")
			} else {
				wantError(t, src, "the server answers with 304")
			}
			header := s.received()[0].Header
			if got := header.Get("If-None-Match"); got != tc.noneMatch {
				t.Errorf("got If-None-Match %q, want %q", got, tc.noneMatch)
			}
			if got := header.Get("If-Modified-Since"); got != tc.modified {
				t.Errorf("got If-Modified-Since %q, want %q", got, tc.modified)
			}
			s.serve(answer(pods("b")))
			wantPods(t, src, "b")
		})
	}
}

// TestServerRestarts ends the server between two requests.
func TestServerRestarts(t *testing.T) {
	s := newServer(t)
	s.serve(answer(pods("a")))
	src := newSource(t, s.URL, s.options())
	wantPods(t, src, "a")
	if !s.received()[0].Close {
		t.Error("the connection remains")
	}
	address := s.Listener.Addr().String()
	s.Close()
	wantError(t, src, "dial tcp "+address+": connect: connection refused")
	s.start(t, address, s.TLS)
	wantPods(t, src, "a")
}

// TestDelays polls a server, and checks for how long the source waits after each response.
func TestDelays(t *testing.T) {
	s := newServer(t)
	options := s.options()
	options.Interval = 20 * time.Second
	src := newSource(t, s.URL, options)
	delays := make(chan time.Duration)
	next := make(chan time.Time)
	src.after = func(d time.Duration) <-chan time.Time { delays <- d; return next }
	ctx, cancel := context.WithCancel(t.Context())
	var read []error
	ended := make(chan error)
	s.serve(answer(pods("a")))
	go func() { ended <- src.Run(ctx, func(_ source.Content, err error) { read = append(read, err) }) }()

	const second = time.Second
	failed := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300}
	type step struct {
		handler http.HandlerFunc // of the next response
		delay   time.Duration    // after the last one
	}
	var steps []step
	expect := func(handler http.HandlerFunc, delay time.Duration) { steps = append(steps, step{handler, delay}) }
	expect(answer(pods("a")), 20*second)
	expect(status(500), 20*second)
	for _, seconds := range failed {
		expect(answer("<html>"), seconds*second)
	}
	expect(answer(pods("a")), 300*second)
	expect(status(503, "Retry-After", "60"), 20*second)     // and the backoff begins again
	expect(status(429, "Retry-After", "1"), 60*second)      // the server's
	expect(status(503, "Retry-After", "1000000"), 2*second) // not less than the backoff
	expect(status(503, "Retry-After", "-1"), 300*second)    // not more than the limit
	expect(status(503, "Retry-After", "soon"), 8*second)    // as if it were not there
	expect(status(503, "Date", "Mon, 23 Nov 2026 08:00:00 GMT", "Retry-After", "Mon, 23 Nov 2026 08:01:40 GMT"), 16*second)
	expect(status(503, "Date", "Mon, 23 Nov 2026 08:00:00 GMT", "Retry-After", "Mon, 23 Nov 2026 07:00:00 GMT"), 100*second)
	expect(answer(pods("a")), 64*second)
	jittered := false
	for i, step := range steps {
		d := <-delays
		if limit := step.delay + step.delay/5; d < step.delay || d > limit {
			t.Errorf("step %d: waits for %s, want %s to %s", i, d, step.delay, limit)
		}
		jittered = jittered || d != step.delay
		s.serve(step.handler)
		next <- time.Time{}
	}
	if !jittered {
		t.Error("the delays have no jitter")
	}
	<-delays
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if want := len(steps) + 1; len(read) != want {
		t.Errorf("%d reads were handled, want %d", len(read), want)
	}
}

// TestRunEnds ends the context while a request waits for its response, which is not handled.
func TestRunEnds(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.serve(func(w http.ResponseWriter, req *http.Request) {
		cancel()
		untilCancelled(w, req)
	})
	src := newSource(t, s.URL, s.options())
	if err := src.Run(ctx, func(_ source.Content, err error) { t.Errorf("handles the error %v", err) }); err != nil {
		t.Error(err)
	}
	if _, err := src.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
