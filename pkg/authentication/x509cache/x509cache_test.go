// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package x509cache

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestCache(t *testing.T) {
	start := time.Now()
	cert := func(raw string, notAfter time.Duration) *x509.Certificate {
		return &x509.Certificate{Raw: []byte(raw), NotAfter: start.Add(notAfter)}
	}
	var (
		alice = cert("alice", time.Hour)
		brief = cert("brief", 10*time.Second)
		other = cert("other", time.Hour)
		early = &x509.Certificate{Raw: []byte("early"), NotBefore: start.Add(time.Second), NotAfter: start.Add(time.Hour)}
		many  = slices.Repeat([]*x509.Certificate{alice}, maxCertificates+1)
	)
	type step struct {
		certs []*x509.Certificate
		after time.Duration
		ca    string
		calls bool // the inner authenticator
	}
	for name, tc := range map[string]struct {
		reject bool
		name   string
		steps  []step
	}{
		"the same certificate":    {steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice}, time.Second, "", false}}},
		"another certificate":     {steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{other}, 0, "", true}}},
		"another intermediate":    {steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice, other}, 0, "", true}}},
		"another CA":              {steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice}, 0, "new", true}}},
		"an expired certificate":  {steps: []step{{[]*x509.Certificate{brief}, 0, "", true}, {[]*x509.Certificate{brief}, 10 * time.Second, "", true}}},
		"an expired intermediate": {steps: []step{{[]*x509.Certificate{alice, brief}, 0, "", true}, {[]*x509.Certificate{alice, brief}, 10 * time.Second, "", true}}},
		"after ttl":               {steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice}, ttl, "", true}}},
		"no certificate":          {steps: []step{{nil, 0, "", true}, {nil, 0, "", true}}},
		"a rejection":             {reject: true, steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice}, time.Second, "", false}}},
		"a rejection, another CA": {reject: true, steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice}, 0, "new", true}}},
		"after failureTTL":        {reject: true, steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice}, failureTTL, "", true}}},
		"not valid yet":           {reject: true, steps: []step{{[]*x509.Certificate{alice, early}, 0, "", true}, {[]*x509.Certificate{alice, early}, time.Second, "", true}}},
		"not valid for some time": {reject: true, steps: []step{{[]*x509.Certificate{early}, -time.Hour, "", true}, {[]*x509.Certificate{early}, failureTTL, "", true}}},
		"as many as allowed":      {steps: []step{{many[1:], 0, "", true}, {many[1:], 0, "", false}}},
		"too many":                {reject: true, steps: []step{{many, 0, "", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.name == "" {
				tc.name = "alice"
			}
			called := false
			inner := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				called = true
				if tc.reject {
					return nil, false, errors.New("rejected")
				}
				return &authenticator.Response{User: &user.DefaultInfo{Name: tc.name}}, true, nil
			})
			ca := "old"
			clock := clocktesting.NewFakePassiveClock(start)
			authn := newCache(inner, clock, func() []byte { return nil }, func() []byte { return []byte(ca) })
			for i, step := range tc.steps {
				called = false
				clock.SetTime(clock.Now().Add(step.after))
				if step.ca != "" {
					ca = step.ca
				}
				response, ok, err := authn.AuthenticateRequest(requestWith(step.certs...))
				if ok == tc.reject || (err != nil) != tc.reject {
					t.Fatalf("request %d: got %v, %v", i, ok, err)
				}
				if ok && response.User.GetName() != tc.name {
					t.Errorf("request %d is authenticated as %q", i, response.User.GetName())
				}
				if called != step.calls {
					t.Errorf("request %d: the inner authenticator was called: %v, want %v", i, called, step.calls)
				}
			}
		})
	}
}

// TestNoOpinion checks that a certificate is neither accepted nor refused from the cache if the
// other authenticator has no opinion, as without a CA.
func TestNoOpinion(t *testing.T) {
	inner := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
	authn := New(inner)
	for range 2 {
		if _, ok, err := authn.AuthenticateRequest(requestWith(&x509.Certificate{})); ok || err != nil {
			t.Errorf("got %v, %v", ok, err)
		}
	}
}

// TestFailuresDoNotEvictUsers checks that a user stays cached when many other certificates are
// refused.
func TestFailuresDoNotEvictUsers(t *testing.T) {
	verifications := 0
	alice := &x509.Certificate{Raw: []byte("alice"), NotAfter: time.Now().Add(time.Hour)}
	authn := New(authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		if req.TLS.PeerCertificates[0] != alice {
			return nil, false, errors.New("rejected")
		}
		verifications++
		return &authenticator.Response{User: &user.DefaultInfo{Name: "alice"}}, true, nil
	}))
	for i := range size + 1 {
		if _, ok, _ := authn.AuthenticateRequest(requestWith(&x509.Certificate{Raw: fmt.Append(nil, i)})); ok {
			t.Fatal("a certificate was accepted")
		}
		if i == 0 || i == size {
			if _, ok, err := authn.AuthenticateRequest(requestWith(alice)); !ok {
				t.Fatal(err)
			}
		}
	}
	if verifications != 1 {
		t.Errorf("the certificate of a user was verified %d times", verifications)
	}
}

// TestConcurrentRequests checks that requests share a verification, but not one with another CA.
func TestConcurrentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var verifications atomic.Int32
		var ca atomic.Value
		ca.Store([]byte("old"))
		end := make(chan struct{})
		authn := New(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			verifications.Add(1)
			<-end
			return nil, false, errors.New("rejected")
		}), func() []byte { return ca.Load().([]byte) })
		send := func(requests, want int) {
			for range requests {
				go func() {
					if _, ok, err := authn.AuthenticateRequest(requestWith(&x509.Certificate{})); ok || err == nil {
						t.Errorf("got %v, %v", ok, err)
					}
				}()
			}
			synctest.Wait()
			if got := verifications.Load(); int(got) != want {
				t.Errorf("%d verifications, want %d", got, want)
			}
		}
		send(100, 1)
		ca.Store([]byte("new"))
		send(100, 2)
		close(end)
	})
}

func requestWith(certs ...*x509.Certificate) *http.Request {
	return &http.Request{TLS: &tls.ConnectionState{PeerCertificates: certs}}
}
