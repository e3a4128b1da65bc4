// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness/tcpproxy"
)

// startProxied starts a cluster behind a proxy, with HTTP/2: all requests of a client
// share a connection.
func startProxied(t *testing.T, handler http.Handler) (*tcpproxy.Proxy, *rest.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy, err := tcpproxy.New(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy, &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", proxy.Port()),
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// anyToken authenticates every token as the user of that name.
func anyToken(w http.ResponseWriter, req *http.Request) {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		panic(err)
	}
	review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: review.Spec.Token}}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(review); err != nil {
		panic(err)
	}
}

// Reviews on a connection that stalls, or is closed, are repeated on another one.
func TestReviewsOnAnotherConnection(t *testing.T) {
	const timeout = 3 * time.Second // the first attempt has a third of it
	for _, kind := range []struct {
		name    string
		handler func(answered func()) http.Handler
		// newReview returns a function that asks for a review that is not cached.
		newReview func(t *testing.T, config *rest.Config) func(ctx context.Context, i int) error
	}{
		{
			"SubjectAccessReview",
			func(answered func()) http.Handler {
				return &cluster{answered: answered, allow: func(authorizationv1.ResourceAttributes) bool { return true }}
			},
			func(t *testing.T, config *rest.Config) func(context.Context, int) error {
				a, err := AuthorizerConfig{Cluster: config, Timeout: timeout, Backoff: wait.Backoff{Steps: 1}}.NewAuthorizer()
				if err != nil {
					t.Fatal(err)
				}
				return func(ctx context.Context, i int) error {
					decision, _, err := a.Authorize(ctx, get("a", fmt.Sprint(i)))
					if err == nil && decision != authorizer.DecisionAllow {
						err = fmt.Errorf("decision %v", decision)
					}
					return err
				}
			},
		},
		{
			"TokenReview",
			func(answered func()) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					answered()
					anyToken(w, req)
				})
			},
			func(t *testing.T, config *rest.Config) func(context.Context, int) error {
				a, err := AuthenticatorConfig{Cluster: config, Timeout: timeout, Backoff: wait.Backoff{Steps: 1}, TokenTTL: time.Hour}.New()
				if err != nil {
					t.Fatal(err)
				}
				return func(ctx context.Context, i int) error {
					req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
					req.Header.Set("Authorization", fmt.Sprintf("Bearer user-%d", i))
					response, ok, err := a.AuthenticateRequest(req)
					if err == nil && (!ok || response.User.GetName() != fmt.Sprintf("user-%d", i)) {
						err = fmt.Errorf("the user is %+v", response)
					}
					return err
				}
			},
		},
	} {
		t.Run(kind.name+"/stalled", func(t *testing.T) {
			t.Parallel()
			proxy, config := startProxied(t, kind.handler(func() {}))
			review := kind.newReview(t, config)
			if err := review(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			proxy.Stall()
			var reviews sync.WaitGroup
			for i := range 20 {
				reviews.Go(func() {
					if err := review(t.Context(), i+1); err != nil {
						t.Errorf("after the connection has stalled: %v", err)
					}
				})
			}
			reviews.Wait()
		})
		t.Run(kind.name+"/closed", func(t *testing.T) {
			t.Parallel()
			var proxy *tcpproxy.Proxy
			drop := sync.OnceFunc(func() { proxy.Drop() })
			proxy, config := startProxied(t, kind.handler(func() { drop() }))
			if err := kind.newReview(t, config)(t.Context(), 0); err != nil {
				t.Errorf("after the connection was closed: %v", err)
			}
		})
	}
}

// newSender returns a function that sends a review to the handler, by the path, on a
// connection that is open. Silence of 200 ms is a stall.
func newSender(t *testing.T, handler http.Handler) func(path string) error {
	t.Helper()
	_, config := startProxied(t, handler)
	attempts := newAttempts(config, time.Minute)
	delegate, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	a := attempts(delegate)
	a.silence = 200 * time.Millisecond
	send := func(path string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+path, nil)
		if err != nil {
			return err
		}
		_, err = a.send(req, nil)
		return err
	}
	// Without a connection, two requests at the same time would open two.
	if err := send("/first"); err != nil {
		t.Fatal(err)
	}
	return send
}

// A cluster that answers slowly is not asked again while it answers others, and asked
// once more if nothing at all is received.
func TestSlowCluster(t *testing.T) {
	t.Run("answers others", func(t *testing.T) {
		var slow atomic.Int64
		answer := make(chan struct{})
		send := newSender(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/slow" {
				slow.Add(1)
				<-answer
			}
		}))
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if err := send("/slow"); err != nil {
				t.Error(err)
			}
		})
		for began := time.Now(); slow.Load() == 0 || time.Since(began) < time.Second; {
			if err := send("/fast"); err != nil {
				t.Fatal(err)
			}
		}
		close(answer)
		waiting.Wait()
		if n := slow.Load(); n != 1 {
			t.Errorf("the cluster was asked %d times", n)
		}
	})
	t.Run("silent", func(t *testing.T) {
		var asked atomic.Int64
		send := newSender(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			switch {
			case req.URL.Path == "/first":
			case asked.Add(1) == 1:
				<-req.Context().Done()
			default:
				time.Sleep(500 * time.Millisecond) // longer than the first attempt may take
			}
		}))
		if err := send("/"); err != nil {
			t.Error(err)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("the cluster was asked %d times", n)
		}
	})
}
