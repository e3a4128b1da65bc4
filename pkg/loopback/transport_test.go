// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
)

// newClient returns an HTTP client of the handler, with the config of the transport.
func newClient(t *testing.T, handler http.HandlerFunc) (*http.Client, *rest.Config) {
	t.Helper()
	transport := &Transport{}
	transport.Serve(handler)
	config := transport.ClientConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, config
}

func newRequest(ctx context.Context, t *testing.T, config *rest.Config, method, path, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func do(t *testing.T, client *http.Client, req *http.Request) *http.Response {
	t.Helper()
	response, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestRequest(t *testing.T) {
	type key struct{}
	type seen struct {
		method, uri, path, query, host, remote, authorization, header, body string
		length                                                              int64
		tls, value                                                          bool
	}
	var got seen
	client, config := newClient(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		got = seen{req.Method, req.RequestURI, req.URL.EscapedPath(), req.URL.RawQuery, req.Host, req.RemoteAddr, req.Header.Get("Authorization"),
			req.Header.Get("X-Test"), string(body), req.ContentLength, req.TLS != nil, req.Context().Value(key{}) != nil}
		req.Header.Set("X-Test", "changed")
		w.Header().Set("X-Test", "response")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("X-Test", "too late")
		w.WriteHeader(http.StatusTeapot) // has no effect
		io.WriteString(w, "done")
	})
	req := newRequest(context.WithValue(t.Context(), key{}, 1), t, config, "POST", "/a%2Fb/c?d=e", "content")
	req.Header.Set("X-Test", "request")
	req.Header.Set("Authorization", "Bearer "+config.BearerToken) // else the client would copy the request
	response := do(t, client, req)
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := seen{"POST", "/a%2Fb/c?d=e", "/a%2Fb/c", "d=e", "localhost", "127.0.0.1:0", "Bearer " + config.BearerToken, "request", "content", 7, false, false}
	if got != want {
		t.Errorf("the handler got\n%+v, want\n%+v", got, want)
	}
	if response.StatusCode != http.StatusCreated || response.Status != "201 Created" || response.Header.Get("X-Test") != "response" || string(body) != "done" {
		t.Errorf("got %s, %v, %q", response.Status, response.Header, body)
	}
	if req.Header.Get("X-Test") != "request" {
		t.Error("the handler changed the request of the client")
	}
}

// TestTokens shows that two servers have different tokens.
func TestTokens(t *testing.T) {
	var one, other Transport
	if a, b := one.ClientConfig().BearerToken, other.ClientConfig().BearerToken; a == b || len(a) < 26 {
		t.Errorf("the tokens are %q and %q", a, b)
	}
}

func TestNothingWritten(t *testing.T) {
	client, config := newClient(t, func(http.ResponseWriter, *http.Request) {})
	response := do(t, client, newRequest(t.Context(), t, config, "GET", "/", ""))
	if body, err := io.ReadAll(response.Body); response.StatusCode != http.StatusOK || len(body) > 0 || err != nil {
		t.Errorf("got %s, %q, %v", response.Status, body, err)
	}
}

func TestNotServing(t *testing.T) {
	config := (&Transport{}).ClientConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(newRequest(t.Context(), t, config, "GET", "/", "")); !errors.Is(err, errNotServing) {
		t.Errorf("got %v", err)
	}
}

// TestStream shows that the client can read what is flushed while the handler runs, and
// not before.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan bool)
		client, config := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			for range next {
				io.WriteString(w, "ev")
				<-next
				io.WriteString(w, "ent")
				w.(http.Flusher).Flush()
			}
		})
		response := do(t, client, newRequest(t.Context(), t, config, "GET", "/", ""))
		read := make(chan string)
		go func() {
			defer close(read)
			for buf := make([]byte, 100); ; {
				n, err := response.Body.Read(buf)
				if err != nil {
					if err != io.EOF {
						t.Error(err)
					}
					return
				}
				read <- string(buf[:n])
			}
		}()
		for range 3 {
			next <- true
			synctest.Wait()
			select {
			case got := <-read:
				t.Errorf("read %q before it was flushed", got)
			default:
			}
			next <- true
			if got := <-read; got != "event" {
				t.Errorf("read %q", got)
			}
		}
		close(next)
		if got, more := <-read; more {
			t.Errorf("read %q after the end", got)
		}
	})
}

// TestBounded shows that the handler waits for the client when the buffer is full, and
// that all arrives.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := bytes.Repeat([]byte("0123456789"), maxBuffered/2)
		var wrote bool
		client, config := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
			n, err := w.Write(content)
			wrote = n == len(content) && err == nil
		})
		response := do(t, client, newRequest(t.Context(), t, config, "GET", "/", ""))
		synctest.Wait()
		if n := response.Body.(*stream).buffered.Len(); n != maxBuffered || wrote {
			t.Errorf("the handler wrote %d bytes without a reader; had it written all? %t", n, wrote)
		}
		got, err := io.ReadAll(response.Body)
		if !bytes.Equal(got, content) || err != nil || !wrote {
			t.Errorf("read %d bytes of %d, %v", len(got), len(content), err)
		}
	})
}

// TestClientEnds shows that the handler ends when the client does, whether it waits
// or writes.
func TestClientEnds(t *testing.T) {
	handlers := map[string]func(http.ResponseWriter, *http.Request) error{
		"waits for the context": func(w http.ResponseWriter, req *http.Request) error {
			w.(http.Flusher).Flush()
			<-req.Context().Done()
			_, err := io.WriteString(w, "more")
			return err
		},
		"waits for CloseNotify": func(w http.ResponseWriter, _ *http.Request) error {
			w.(http.Flusher).Flush()
			//lint:ignore SA1019 deprecated, but the library requires it
			<-w.(http.CloseNotifier).CloseNotify()
			_, err := io.WriteString(w, "more")
			return err
		},
		"writes": func(w http.ResponseWriter, _ *http.Request) error {
			for {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return err
				}
			}
		},
	}
	ends := map[string]struct {
		end  func(*http.Response, context.CancelFunc)
		want error
	}{
		"close":  {func(response *http.Response, _ context.CancelFunc) { response.Body.Close() }, errBodyClosed},
		"cancel": {func(_ *http.Response, cancel context.CancelFunc) { cancel() }, context.Canceled},
	}
	for name, handler := range handlers {
		for how, end := range ends {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					ended := make(chan error, 1)
					client, config := newClient(t, func(w http.ResponseWriter, req *http.Request) { ended <- handler(w, req) })
					response := do(t, client, newRequest(ctx, t, config, "GET", "/", ""))
					end.end(response, cancel)
					if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("a write after the end: %v", err)
					}
					content, err := io.ReadAll(response.Body)
					if !errors.Is(err, end.want) || how == "close" && len(content) > 0 {
						t.Errorf("a read after the end: %d bytes, %v, want %v", len(content), err, end.want)
					}
				})
			})
		}
	}
}

// TestCancelBeforeResponse shows that the client does not wait for the handler.
func TestCancelBeforeResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan bool)
		defer close(release)
		client, config := newClient(t, func(_ http.ResponseWriter, req *http.Request) {
			cancel()
			<-req.Context().Done()
			<-release
		})
		if _, err := client.Do(newRequest(ctx, t, config, "GET", "/", "")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPanic(t *testing.T) {
	tests := map[string]struct {
		value any
		want  string
	}{
		"abort": {http.ErrAbortHandler, http.ErrAbortHandler.Error()},
		"other": {"a fault", "panic in the handler of GET /path: a fault\ngoroutine"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client, config := newClient(t, func(http.ResponseWriter, *http.Request) { panic(test.value) })
			if _, err := client.Do(newRequest(t.Context(), t, config, "GET", "/path", "")); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("before the response: %v, want %s", err, test.want)
			}
			client, config = newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "part")
				panic(test.value)
			})
			response := do(t, client, newRequest(t.Context(), t, config, "GET", "/path", ""))
			body, err := io.ReadAll(response.Body)
			if string(body) != "part" || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("after the response: %q, %v, want %s", body, err, test.want)
			}
		})
	}
}

type failingBody struct{ io.Reader }

func (failingBody) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestBodyFails(t *testing.T) {
	client, config := newClient(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	req := newRequest(t.Context(), t, config, "POST", "/", "")
	req.Body = io.NopCloser(failingBody{})
	if _, err := client.Do(req); err == nil || !strings.Contains(err.Error(), "read the body of the request: broken") {
		t.Errorf("got %v", err)
	}
}
