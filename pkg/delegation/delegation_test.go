// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/authfailure"
)

// cluster answers SubjectAccessReviews in place of a kube-apiserver. The tests in
// test/kubernetes use a real one.
type cluster struct {
	allow func(authorizationv1.ResourceAttributes) bool
	// answered, if it is set, is called before each answer.
	answered func()
	// code, if it is set, is that of each answer.
	code int

	mu      sync.Mutex
	reviews []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		panic(err)
	}
	c.mu.Lock()
	if r := review.Spec.ResourceAttributes; r != nil {
		c.reviews = append(c.reviews, fmt.Sprintf("%s %s %s %s/%s", review.Spec.User, r.Verb, path.Join(r.Group, r.Version, r.Resource, r.Subresource), r.Namespace, r.Name))
		review.Status.Allowed = c.allow(*r)
	} else {
		c.reviews = append(c.reviews, review.Spec.NonResourceAttributes.Path)
	}
	c.mu.Unlock()
	if c.answered != nil {
		c.answered()
	}
	if c.code != 0 {
		w.WriteHeader(c.code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(review); err != nil {
		panic(err)
	}
}

func (c *cluster) start(t *testing.T) *httptest.Server {
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server
}

// RoundTrip answers without a network, whose goroutines a synctest bubble cannot have.
func (c *cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	c.ServeHTTP(answer, req)
	return answer.Result(), nil
}

func newAuthorizer(t *testing.T, url string, broad bool) authorizer.Authorizer {
	return newAuthorizerOf(t, &rest.Config{Host: url}, broad)
}

func newAuthorizerOf(t *testing.T, cluster *rest.Config, broad bool) authorizer.Authorizer {
	t.Helper()
	cluster.ContentType = runtime.ContentTypeJSON
	a, err := AuthorizerConfig{
		Cluster:  cluster,
		AllowTTL: time.Hour, DenyTTL: time.Hour, Timeout: time.Minute,
		Backoff:       wait.Backoff{Steps: 1},
		AllowedGroups: []string{user.SystemPrivilegedGroup}, AllowedPaths: []string{"/healthz"},
		Broad: broad,
	}.NewAuthorizer()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (c *cluster) authorizer(t *testing.T, broad bool) authorizer.Authorizer {
	return newAuthorizer(t, c.start(t).URL, broad)
}

func get(namespace, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "alice"}, Verb: "get", APIGroup: "g", APIVersion: "v1", Resource: "pods",
		Namespace: namespace, Name: name, ResourceRequest: true,
	}
}

// A user gets half of the reviews in flight, and others still get some.
func TestFairness(t *testing.T) {
	f := inFlight{users: map[string]int{}}
	acquire := func(user string) (n int) {
		for f.acquire(user) {
			n++
		}
		return n
	}
	if got := acquire("greedy"); got != maxReviews/2 {
		t.Errorf("a single user has %d of %d reviews", got, maxReviews)
	}
	if got := acquire("second"); got != maxReviews/4 {
		t.Errorf("a second user has %d", got)
	}
	if !f.acquire("third") {
		t.Error("a third user gets none")
	}
	f.release("third")
	for range maxReviews / 2 {
		f.release("greedy")
	}
	for range maxReviews / 4 {
		f.release("second")
	}
	if f.total != 0 || len(f.users) != 0 {
		t.Errorf("%d reviews are left, of %v", f.total, f.users)
	}
}

// Requests for the same review share it, and one that ends does not end it for the
// others.
func TestShared(t *testing.T) { synctest.Test(t, testShared) }

func testShared(t *testing.T) {
	started, answer := make(chan struct{}), make(chan struct{})
	c := &cluster{allow: func(authorizationv1.ResourceAttributes) bool { return true }, answered: func() {
		close(started) // panics if there is a second review
		<-answer
	}}
	a := newAuthorizerOf(t, &rest.Config{Host: "http://cluster", Transport: c}, false)
	first, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, _, err := a.Authorize(first, get("a", "x")); !errors.Is(err, context.Canceled) {
			t.Errorf("the first request: %v", err)
		}
	})
	<-started
	wg.Go(func() {
		if decision, _, err := a.Authorize(t.Context(), get("a", "x")); err != nil || decision != authorizer.DecisionAllow {
			t.Errorf("the second request: decision %v, error %v", decision, err)
		}
	})
	synctest.Wait() // until the second request waits, too
	cancel()
	synctest.Wait() // until the first one has ended
	close(answer)
	wg.Wait()
}

// A review that is not answered ends, although it continues without the request. The bubble
// would not end otherwise.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		a := newAuthorizerOf(t, &rest.Config{Host: "http://cluster", Transport: silent}, false)
		if decision, _, err := a.Authorize(t.Context(), get("a", "x")); err == nil || decision == authorizer.DecisionAllow {
			t.Errorf("decision %v, error %v", decision, err)
		}
	})
}

// Of the reviews of a user, only as many are in flight as the user may have. Another user still
// gets one.
func TestTooManyReviews(t *testing.T) { synctest.Test(t, testTooManyReviews) }

func testTooManyReviews(t *testing.T) {
	answer := make(chan struct{})
	c := &cluster{allow: func(authorizationv1.ResourceAttributes) bool { return true }, answered: func() { <-answer }}
	a := newAuthorizerOf(t, &rest.Config{Host: "http://cluster", Transport: c}, false)
	errs := make(chan error, maxReviews)
	var wg sync.WaitGroup
	for i := range maxReviews {
		wg.Go(func() {
			_, _, err := a.Authorize(t.Context(), get("a", fmt.Sprint(i)))
			errs <- err
		})
	}
	for range maxReviews / 2 {
		if err := <-errs; !errors.Is(err, errTooManyReviews) {
			t.Errorf("got %v", err)
		}
	}
	wg.Go(func() {
		other := get("a", "x")
		other.User = &user.DefaultInfo{Name: "bob"}
		if decision, _, err := a.Authorize(t.Context(), other); err != nil || decision != authorizer.DecisionAllow {
			t.Errorf("another user: decision %v, error %v", decision, err)
		}
	})
	synctest.Wait() // until its review is in flight, too
	close(answer)
	wg.Wait()
	for range maxReviews / 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// What a client sees when a request cannot be authenticated or authorized.
func TestAuthFailures(t *testing.T) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	refused := &url.Error{Op: "Post", URL: "https://cluster", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	alice := &authenticator.Response{User: &user.DefaultInfo{Name: "alice"}}
	for _, tc := range []struct {
		name       string
		authn      error
		answer     int
		code       int
		retryAfter string
	}{
		{"no answer to a TokenReview", utilerrors.NewAggregate([]error{errors.New("other"), refused}), 0, http.StatusServiceUnavailable, "1"},
		{"an error of the cluster", apierrors.NewInternalError(errors.New("x")), 0, http.StatusServiceUnavailable, "1"},
		{"a TokenReview that the server may not create", utilerrors.NewAggregate([]error{errors.New("other"), apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", nil)}), 0, http.StatusInternalServerError, ""},
		{"an invalid token", errors.New("invalid bearer token"), 0, http.StatusUnauthorized, ""},
		{"no answer to a SubjectAccessReview", nil, -1, http.StatusServiceUnavailable, "1"},
		{"an error instead of a review", nil, http.StatusBadGateway, http.StatusServiceUnavailable, "1"},
		{"a review that the server may not create", nil, http.StatusForbidden, http.StatusInternalServerError, ""},
		{"allowed", nil, 0, http.StatusOK, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &cluster{code: tc.answer, allow: func(authorizationv1.ResourceAttributes) bool { return true }}
			server := c.start(t)
			if tc.answer < 0 {
				server.Close()
			}
			done := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
			handler := filters.WithAuthorization(done, newAuthorizer(t, server.URL, true), codecs)
			authn := noteUnreviewed(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				return alice, tc.authn == nil, tc.authn
			}))
			handler = filters.WithAuthentication(handler, authn, filters.Unauthorized(codecs), nil, nil)
			handler = authfailure.WithErrors(handler, codecs)
			req := httptest.NewRequest(http.MethodGet, "/apis/g/v1/namespaces/a/pods/x", nil)
			req = req.WithContext(request.WithRequestInfo(req.Context(), &request.RequestInfo{
				IsResourceRequest: true, Verb: "get", APIGroup: "g", APIVersion: "v1", Resource: "pods", Namespace: "a", Name: "x",
			}))
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			if w.Code != tc.code || w.Header().Get("Retry-After") != tc.retryAfter {
				t.Errorf("got %d, Retry-After %q: %s; want %d, %q", w.Code, w.Header().Get("Retry-After"), w.Body, tc.code, tc.retryAfter)
			}
			if tc.retryAfter != "" && !strings.Contains(w.Body.String(), `"kind":"Status"`) {
				t.Errorf("the body is no Status: %s", w.Body)
			}
		})
	}
}
