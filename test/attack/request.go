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
	// Watch says that the answer need not end: its beginning is read.
	Watch bool
	// Hangup says that the client leaves as soon as the body is sent.
	Hangup bool
	// Malformed says that it is no request of HTTP, so that the server may reset
	// its stream.
	Malformed bool
	// Unreadable says that its query cannot be parsed. kube-apiserver forwards the
	// part that it can read, without a selector or the dry run, so such a request
	// is only sent to the server itself.
	Unreadable bool
	// Variant says that there are many requests like it, of which a short attack
	// sends some.
	Variant bool
	// Allowed are 5xx codes that are right for this request.
	Allowed []int
}

func (r Request) String() string {
	path := r.Path
	if len(path) > 120 {
		path = fmt.Sprintf("%s... (%d bytes)", path[:120], len(path))
	}
	return fmt.Sprintf("%s/%s: %s %s with %d bytes of %s", r.Class, r.Name, r.Method, path, len(r.Body), r.Header.Get("Content-Type"))
}

// size is how many bytes the client sends, without what HTTP/2 adds.
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
	// Host is the URL of the server, Client how to reach it as this role.
	Host   string
	Client *http.Client
	// Refused means that the server does not authenticate this role: no request gets a
	// 2xx, and the server need not read its body.
	Refused bool
	// Every says that one of so many requests is sent; 0 is all.
	Every int
	// ReadOnly says that no request that would create or change something gets a
	// 2xx. Deletes are not among them.
	ReadOnly bool
	// Writes are subresources that a role may write though it is ReadOnly, such as
	// "namespaces/status".
	Writes []string
}

// mayWrite returns whether the role may write what the request is about.
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

// answer is what came back. It has a code or an error.
type answer struct {
	code int
	size int
	text string // the beginning of the body
	err  error
}

// quoted is how much of an answer a finding shows.
const quoted = 1 << 10

// requestTimeout is longer than any server lets a request run, so that the end
// of a request is the server's doing.
const requestTimeout = 2 * time.Minute

// send sends the request as the role and reads the answer.
func (role Role) send(ctx context.Context, r Request) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no answer within %s", requestTimeout))
	defer cancel()
	if r.Hangup {
		// A request that is not complete is not worked on, so all of it is sent.
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

// newRequest leaves the path and the headers as they are, however odd.
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
