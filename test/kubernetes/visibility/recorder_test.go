// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// object is what the test compares of a Namespace that was delivered.
type object struct {
	name     string
	uid      types.UID
	revision int64
	content  string
}

// event is an event of a watch.
type event struct {
	kind   watch.EventType
	object object
}

func (e event) String() string { return fmt.Sprintf("%s %s", e.kind, e.object) }

func (o object) String() string {
	return fmt.Sprintf("%s at %d (%s, %s)", o.name, o.revision, o.uid, o.content)
}

func compareObjects(a, b object) int { return strings.Compare(a.name, b.name) }

// frame is an event as it was delivered.
type frame struct {
	event
	// initialEnd marks the bookmark that closes the initial events.
	initialEnd bool
	// code and message are those of an ERROR.
	code    int
	message string
}

// listing is a list as it was delivered.
type listing struct {
	revision int64
	next     string // the token to continue
	objects  []object
}

// exchange is a request for Namespaces and what was delivered.
type exchange struct {
	query url.Values
	// floor is a revision that was acknowledged to a writer before the request was sent.
	floor int64

	mu sync.Mutex
	delivered
}

// delivered is what was delivered of a response and not taken yet.
type delivered struct {
	code   int    // 0 if there is no response
	status string // the body, if the code is not 200
	list   *listing
	frames []frame
	ended  bool
	broken error // if the body cannot be decoded
}

// delivery is what was delivered of the response to a request.
type delivery struct {
	request *exchange
	delivered
}

func (x *exchange) isWatch() bool { return x.query.Get("watch") != "" }

func (x *exchange) String() string { return "GET namespaces?" + x.query.Encode() }

// recorder records what a client gets, in order. It is a RoundTripper. Watches and
// lists of a client are not concurrent, so a request ends those before it.
type recorder struct {
	next  http.RoundTripper
	floor func() int64

	mu        sync.Mutex
	exchanges []*exchange // without those that have ended and were taken
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{query: req.URL.Query(), floor: r.floor()}
	r.mu.Lock()
	for _, before := range r.exchanges {
		before.end()
	}
	r.exchanges = append(r.exchanges, x)
	r.mu.Unlock()
	response, err := r.next.RoundTrip(req)
	if err != nil {
		x.end()
		return nil, err
	}
	x.mu.Lock()
	x.code = response.StatusCode
	x.mu.Unlock()
	response.Body = &tee{response.Body, x, bytes.Buffer{}}
	return response, nil
}

// take returns what was delivered since the last call.
func (r *recorder) take() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	var taken []delivery
	r.exchanges = slices.DeleteFunc(r.exchanges, func(x *exchange) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		taken = append(taken, delivery{x, x.delivered})
		x.list, x.frames = nil, nil
		return x.ended
	})
	return taken
}

func (x *exchange) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
}

// tee decodes a body while the client reads it.
type tee struct {
	io.ReadCloser
	exchange *exchange
	unread   bytes.Buffer
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.unread.Write(p[:n])
	x := t.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return n, err
	}
	switch {
	case x.code == http.StatusOK && x.isWatch():
		for {
			end := bytes.IndexByte(t.unread.Bytes(), '\n')
			if end < 0 {
				break
			}
			f, decodeErr := decodeFrame(t.unread.Next(end + 1))
			if decodeErr != nil {
				x.broken = decodeErr
			}
			x.frames = append(x.frames, f)
		}
	case err != io.EOF:
	case x.code == http.StatusOK:
		x.list, x.broken = decodeList(t.unread.Bytes())
	default:
		x.status = t.unread.String()
	}
	x.ended = x.ended || err != nil
	return n, err
}

// Close implements io.Closer.
func (t *tee) Close() error {
	t.exchange.end()
	return t.ReadCloser.Close()
}

func decodeFrame(data []byte) (frame, error) {
	var decoded struct {
		Type   watch.EventType
		Object struct {
			Metadata metav1.ObjectMeta
			Code     int
			Message  string
		}
	}
	if err := json.Unmarshal(data, &decoded); err != nil {
		return frame{}, fmt.Errorf("decode an event: %w: %s", err, data)
	}
	f := frame{event: event{kind: decoded.Type}, code: decoded.Object.Code, message: decoded.Object.Message}
	if f.kind == watch.Error {
		return f, nil
	}
	var err error
	f.object, err = newObject(&decoded.Object.Metadata)
	f.initialEnd = f.kind == watch.Bookmark && decoded.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
	return f, err
}

func decodeList(data []byte) (*listing, error) {
	var decoded struct {
		Metadata metav1.ListMeta
		Items    []struct{ Metadata metav1.ObjectMeta }
	}
	if err := json.Unmarshal(data, &decoded); err != nil {
		return nil, fmt.Errorf("decode a list: %w: %s", err, data)
	}
	revision, err := parseRevision(decoded.Metadata.ResourceVersion)
	if err != nil {
		return nil, err
	}
	list := &listing{revision: revision, next: decoded.Metadata.Continue}
	for _, item := range decoded.Items {
		o, err := newObject(&item.Metadata)
		if err != nil {
			return nil, err
		}
		list.objects = append(list.objects, o)
	}
	return list, nil
}

func newObject(meta *metav1.ObjectMeta) (object, error) {
	revision, err := parseRevision(meta.ResourceVersion)
	return object{meta.Name, meta.UID, revision, contentOf(meta)}, err
}

func parseRevision(resourceVersion string) (int64, error) {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read a resourceVersion: %w", err)
	}
	return revision, nil
}
