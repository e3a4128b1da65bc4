// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package x509cache

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"testing"
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
		"a rejection":             {reject: true, steps: []step{{[]*x509.Certificate{alice}, 0, "", true}, {[]*x509.Certificate{alice}, 0, "", true}}},
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
				response, ok, err := authn.AuthenticateRequest(&http.Request{TLS: &tls.ConnectionState{PeerCertificates: step.certs}})
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
