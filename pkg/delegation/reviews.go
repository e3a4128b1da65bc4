// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxReviews is how many reviews may be in flight. A user may have as many in
// flight as are still free: a single user gets half of them, and there is always
// one for another user.
const maxReviews = 200

// errTooManyReviews means that a user has too many reviews in flight.
var errTooManyReviews = errors.New("too many authorization requests of this user are in flight")

// reviewTransport sends SubjectAccessReviews. The library gives no other way to
// get between its cache and the cluster.
type reviewTransport struct {
	attempts *attempts
	timeout  time.Duration
	inFlight inFlight
	shared   singleflight.Group
}

func newReviewTransport(attempts *attempts, timeout time.Duration) *reviewTransport {
	return &reviewTransport{attempts: attempts, timeout: timeout, inFlight: inFlight{users: map[string]int{}}}
}

// RoundTrip implements http.RoundTripper. Requests with the same body share one,
// which continues for the others when one of them ends. It returns
// errTooManyReviews if the user of the context has too many reviews in flight.
func (t *reviewTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readReview(req)
	if err != nil {
		return nil, err
	}
	result := t.shared.DoChan(string(body), func() (any, error) { return t.send(req, body) })
	select {
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*answer).response(req), nil
	}
}

func (t *reviewTransport) send(req *http.Request, body []byte) (*answer, error) {
	user := reviewedUser(req.Context())
	if !t.inFlight.acquire(user) {
		return nil, errTooManyReviews
	}
	defer t.inFlight.release(user)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), t.timeout)
	defer cancel()
	return t.attempts.send(req.WithContext(ctx), body)
}

// maxTokenReviews is how many TokenReviews may be in flight. Clients with invalid tokens
// cause them too, and a review continues when its client disconnects.
const maxTokenReviews = 200

// errTooManyTokenReviews means that too many TokenReviews are in flight.
var errTooManyTokenReviews = errors.New("too many token reviews are in flight")

// tokenTransport sends TokenReviews. The library's cache lets requests with the same
// token share one.
type tokenTransport struct {
	attempts *attempts
	inFlight chan struct{}
}

func newTokenTransport(attempts *attempts) *tokenTransport {
	return &tokenTransport{attempts, make(chan struct{}, maxTokenReviews)}
}

// RoundTrip implements http.RoundTripper. It returns errTooManyTokenReviews if too many
// are in flight.
func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case t.inFlight <- struct{}{}:
		defer func() { <-t.inFlight }()
	default:
		return nil, errTooManyTokenReviews
	}
	body, err := readReview(req)
	if err != nil {
		return nil, err
	}
	result, err := t.attempts.send(req, body)
	if err != nil {
		return nil, err
	}
	return result.response(req), nil
}

type userKey struct{}

// withReviewedUser returns a context for a request that needs reviews of a user.
func withReviewedUser(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, userKey{}, name)
}

func reviewedUser(ctx context.Context) string {
	name, _ := ctx.Value(userKey{}).(string)
	return name
}

// inFlight counts the reviews in flight, by user.
type inFlight struct {
	mu    sync.Mutex
	total int
	users map[string]int
}

func (f *inFlight) acquire(user string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users[user] >= maxReviews-f.total {
		return false
	}
	f.total++
	f.users[user]++
	return true
}

func (f *inFlight) release(user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
	if f.users[user]--; f.users[user] == 0 {
		delete(f.users, user)
	}
}
