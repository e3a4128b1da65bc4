// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Request is one hostile request.
type Request struct {
	Class string // of the generator
	Name  string // what is hostile about it
	// Method and Path are those of the request. The path has the query, and
	// nothing is added to either.
	Method, Path string
	Header       http.Header
	Body         []byte
	// Watch means that only the beginning of the response is read, which may not
	// end.
	Watch bool
	// Hangup means that the client disconnects once it has sent the body.
	Hangup bool
	// Malformed means that it is not a valid HTTP request, so the server may reset
	// its stream.
	Malformed bool
	// Direct means that it is sent to the server directly. Of a query that cannot be
	// parsed, kube-apiserver would forward only the part that it can read, without a
	// selector or the dry run; and some would keep it busy for hours.
	Direct bool
	// Variant means that there are many similar requests, of which a short attack
	// sends a sample.
	Variant bool
	// Allowed are the 5xx codes that are correct for this request.
	Allowed []int
}

func (r Request) String() string {
	path := r.Path
	if len(path) > 120 {
		path = fmt.Sprintf("%s... (%d bytes)", path[:120], len(path))
	}
	return fmt.Sprintf("%s/%s: %s %s with %d bytes of %s", r.Class, r.Name, r.Method, path, len(r.Body), r.Header.Get("Content-Type"))
}

// size is the number of bytes that the client sends, without the frames of HTTP/2.
func (r Request) size() int {
	n := len(r.Method) + len(r.Path) + len(r.Body)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value)
		}
	}
	return n
}

// Role is a user that sends requests.
type Role struct {
	Name string
	// Host is the URL of the server. Client authenticates as this role.
	Host   string
	Client *http.Client
	// Unauthenticated means that this role has no valid credentials: no request gets a
	// 2xx, and the server need not read its body.
	Unauthenticated bool
	// Every is n to send one of n requests; 0 sends all.
	Every int
	// ReadOnly means that no request that would create or change an object may get a
	// 2xx. Deletes may.
	ReadOnly bool
	// Writes are the subresources that a ReadOnly role may write, such as
	// "namespaces/status".
	Writes []string
}

// mayWrite reports whether the role may send the request, if it is a write.
func (role Role) mayWrite(r Request) bool {
	path, _, _ := strings.Cut(r.Path, "?")
	return !role.ReadOnly || slices.ContainsFunc(role.Writes, func(of string) bool {
		resource, subresource, _ := strings.Cut(of, "/")
		return strings.Contains(path, "/"+resource+"/") && strings.HasSuffix(path, "/"+subresource)
	})
}

// NewClient returns the client of a role or of a Server. It follows no redirect,
// does not undo compression, and limits neither its rate nor its time.
func NewClient(config *rest.Config) (*http.Client, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// answer is the response, with a code, or the error.
type answer struct {
	code int
	size int
	text string // the beginning of the body
	err  error
}

// quoted is the number of bytes of a response that a finding shows.
const quoted = 1 << 10

// requestTimeout is longer than the servers' own timeouts, so that the server ends
// a request.
const requestTimeout = 2 * time.Minute

// send sends the request as the role and reads the answer.
func (role Role) send(ctx context.Context, r Request) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no answer within %s", requestTimeout))
	defer cancel()
	if r.Hangup {
		// The server does not process an incomplete request, so all of it is sent.
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }})
	}
	request, err := newRequest(ctx, role.Host, r)
	if err != nil {
		return answer{err: err}
	}
	response, err := role.Client.Do(request)
	if err != nil {
		if r.Hangup && ctx.Err() != nil {
			return answer{}
		}
		return answer{err: fmt.Errorf("%w (%v)", err, context.Cause(ctx))}
	}
	defer response.Body.Close()
	if r.Watch && response.StatusCode == http.StatusOK {
		return answer{code: response.StatusCode}
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, quoted))
	if err != nil && !r.Hangup {
		return answer{err: fmt.Errorf("read the answer: %w", err)}
	}
	rest, err := io.Copy(io.Discard, response.Body)
	if err != nil && !r.Hangup {
		return answer{err: fmt.Errorf("read the answer: %w", err)}
	}
	return answer{code: response.StatusCode, size: len(text) + int(rest), text: string(text)}
}

// newRequest does not normalize the path and the headers.
func newRequest(ctx context.Context, host string, r Request) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, host, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	request.URL.Opaque, request.URL.RawQuery, _ = strings.Cut(r.Path, "?")
	for name, values := range r.Header {
		request.Header[name] = slices.Clone(values)
	}
	return request, nil
}
