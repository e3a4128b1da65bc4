// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// storm opens many connections or streams at once and leaves.
type storm struct {
	name string
	run  func(context.Context, *run) error
}

// How many streams and connections a storm opens. HTTP/2 streams of one role
// share a connection, and the server allows a hundred or more on it.
const (
	stormStreams     = 400
	stormConnections = 100
)

// storms are judged together: what all of them allocate must not be more than
// as many ordinary requests may, and the server's health afterwards is judged
// by the caller.
func (r *run) storms(ctx context.Context) error {
	for _, s := range []storm{
		{"many ordinary requests at once", manyStreams},
		{"streams that are reset at once", resetStreams},
		{"bodies that never end", slowBodies},
		{"watches that are not read", watches},
		{"silent connections", silentConnections},
		{"invalid requests", nonsense},
	} {
		r.Logf("storm: %s", s.name)
		before, err := r.Server.count(ctx)
		if err != nil {
			return err
		}
		if err := s.run(ctx, r); err != nil {
			return fmt.Errorf("storm of %s: %w", s.name, err)
		}
		now, err := r.Server.count(ctx)
		if err != nil {
			return err
		}
		now, err = r.Server.rest(ctx, now)
		request := Request{Class: "storms", Name: s.name}
		if err != nil {
			r.find(r.Roles[0], request, err.Error())
			continue
		}
		did := now.minus(before)
		most := stormStreams * r.bounds.bytes.at(1<<10)
		if did.Bytes > most {
			r.find(r.Roles[0], request, fmt.Sprintf("%.0f bytes allocated, at most %.0f", did.Bytes, most))
		}
		r.Report.add(r.Roles[0], request, answer{}, did.Bytes/most)
	}
	return nil
}

// together calls a function n times at once and returns the errors.
func together(n int, f func() error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	return errors.Join(errs...)
}

func manyStreams(ctx context.Context, r *run) error {
	request := ordinary(r.paths, 1)
	return together(stormStreams, func() error {
		a := r.Roles[0].send(ctx, request)
		if a.code == http.StatusTooManyRequests {
			return nil
		}
		if fault := judgeAnswer(r.Roles[0], request, a); fault != "" {
			request.Class, request.Name = "storms", "many at once"
			return fmt.Errorf("%s: %s", request, fault)
		}
		return nil
	})
}

func resetStreams(ctx context.Context, r *run) error {
	request := ordinary(r.paths, 1)
	request.Hangup = true
	return together(stormStreams, func() error {
		r.Roles[0].send(ctx, request) // which has no answer
		return nil
	})
}

// slowBodies start and then hang until the client disconnects.
func slowBodies(ctx context.Context, r *run) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const n = 60 // less than the streams of a connection
	var begun, all sync.WaitGroup
	for range n {
		begun.Add(1)
		all.Go(func() {
			reader, writer := io.Pipe()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Roles[0].Host+r.paths.pods()+dryRun, reader)
			if err != nil {
				begun.Done()
				return
			}
			request.Header = typed(asJSON)
			go func() {
				defer begun.Done()
				// The client has taken the first half once it waits for the other.
				_, _ = writer.Write([]byte(`{"metadata":{"name":"p"},"spec":`)) // fails only when the client has left
			}()
			response, err := r.Roles[0].Client.Do(request)
			if err == nil {
				response.Body.Close()
			}
			reader.CloseWithError(context.Canceled)
		})
	}
	begun.Wait()
	// Other requests are served at the same time.
	if a := r.Roles[0].send(ctx, ordinary(r.paths, 1)); a.code != http.StatusCreated {
		return fmt.Errorf("an ordinary request during slow ones failed: %d %s %v", a.code, a.text, a.err)
	}
	cancel()
	all.Wait()
	return nil
}

func watches(ctx context.Context, r *run) error {
	request := Request{Class: "storms", Name: "watch", Method: http.MethodGet, Path: r.paths.pods() + "?watch=true", Watch: true}
	return together(stormStreams, func() error {
		if fault := judgeAnswer(r.Roles[0], request, r.Roles[0].send(ctx, request)); fault != "" {
			return fmt.Errorf("%s", fault)
		}
		return nil
	})
}

// silentConnections opens connections and sends nothing.
func silentConnections(ctx context.Context, r *run) error {
	return together(stormConnections, func() error {
		connection, err := r.dial(ctx, false)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// nonsense sends bytes that are not requests, or requests that never end.
func nonsense(ctx context.Context, r *run) error {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	settings := frame(4, 0, 0, nil)
	for _, sent := range []struct {
		http2 bool
		what  string
	}{
		{false, "GET / HTTP/1.1\r\n"},
		{false, "GET / HTTP/9.9\r\n\r\n"},
		{false, "\x16\x03\x01" + strings.Repeat("\xff", 10_000)},
		{false, strings.Repeat("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 1_000)},
		{false, "POST " + api + "/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{"},
		{false, "POST " + api + "/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n"},
		{false, "POST " + api + "/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("a", 100)+"\r\na\r\n", 1_000)},
		{false, "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 100_000)},
		{true, preface},
		{true, preface + settings + strings.Repeat(settings, 10_000)},
		{true, preface + settings + strings.Repeat(frame(6, 0, 0, make([]byte, 8)), 10_000)},                                         // pings
		{true, preface + settings + frame(1, 0, 1, []byte{0x82}) + strings.Repeat(frame(9, 0, 1, []byte("\x00\x01a\x01b")), 20_000)}, // headers that go on
		{true, preface + settings + frame(1, 4, 1, []byte(strings.Repeat("\xff", 1000)))},                                            // no HPACK
		{true, preface + settings + frame(0, 0, 7, make([]byte, 16<<10))},                                                            // data of no stream
		{true, preface + settings + strings.Repeat(frame(8, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff}), 10)},                              // windows
		{true, preface + settings + strings.Repeat(frame(2, 0, 1, []byte{0, 0, 0, 1, 255}), 10_000)},                                 // priorities
		{true, preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01"},
	} {
		connection, err := r.dial(ctx, sent.http2)
		if err != nil {
			return err
		}
		// The counters show what the server has done. It may hang up early, and must
		// when there is no more to read.
		_, _ = io.WriteString(connection, sent.what)
		_ = connection.CloseWrite()
		_ = connection.SetReadDeadline(time.Now().Add(settleTimeout))
		_, err = io.Copy(io.Discard, connection)
		_ = connection.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the server does not hang up on %.40q", sent.what)
		}
	}
	return nil
}

// frame is a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return string(append(b, payload...))
}

// dial opens a connection to the server as an anonymous user.
func (r *run) dial(ctx context.Context, http2 bool) (*tls.Conn, error) {
	address, err := url.Parse(r.Server.URL)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{InsecureSkipVerify: true} // nothing secret is sent
	if http2 {
		config.NextProtos = []string{"h2"}
	}
	connection, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address.Host)
	if err != nil {
		return nil, fmt.Errorf("open a connection: %w", err)
	}
	return connection.(*tls.Conn), nil
}
