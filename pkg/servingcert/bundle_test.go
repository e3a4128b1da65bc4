// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts = []string{"borough-apiserver.borough-system.svc", "borough-apiserver.borough-system.svc.cluster.local"}
)

func anyCA(*x509.Certificate) bool { return true }
func noCA(*x509.Certificate) bool  { return false }

// store puts a bundle into a Secret and reads it back.
func store(t *testing.T, b bundle) bundle {
	t.Helper()
	return readBundle(&corev1.Secret{Data: b.data()})
}

func advance(t *testing.T, p policy, b bundle, now time.Time, known func(*x509.Certificate) bool) (bundle, bool, time.Time) {
	t.Helper()
	b, changed, next, err := p.advance(b, now, known)
	if err != nil {
		t.Fatal(err)
	}
	if !next.After(now) {
		t.Fatalf("at %s the next look is at %s", now, next)
	}
	return b, changed, next
}

// TestRotation follows certificates that live a minute for ten of them. The
// host learns what to trust only 10 s after it is written, and a replica
// serves what it should 10 s late; still, what is served is always trusted and
// valid.
func TestRotation(t *testing.T) {
	const late = 10 * time.Second
	p := policy{hosts: hosts, lifetime: time.Minute}
	type written struct {
		at time.Time
		b  bundle
	}
	var history []written
	// asOf is the bundle as somebody sees it who is that late.
	asOf := func(now time.Time, late time.Duration) bundle {
		seen := history[0].b
		for _, w := range history {
			if !w.at.After(now.Add(-late)) {
				seen = w.b
			}
		}
		return seen
	}

	b, _, next := advance(t, p, bundle{}, start, noCA)
	history = append(history, written{start, store(t, b)})
	served := map[string]bool{}
	for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(time.Second) {
		if !now.Before(next) {
			known := func(ca *x509.Certificate) bool { return contains(asOf(now, late).trusted, ca) }
			var changed bool
			if b, changed, next = advance(t, p, store(t, b), now, known); changed {
				history = append(history, written{now, store(t, b)})
			}
		}
		pool := x509.NewCertPool()
		for _, ca := range asOf(now, late).trusted {
			pool.AddCert(ca)
		}
		for _, replica := range []bundle{asOf(now, 0), asOf(now, late)} {
			for _, host := range hosts {
				if _, err := replica.serving.cert.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: now}); err != nil {
					t.Fatalf("after %s: %v", now.Sub(start), err)
				}
			}
			served[string(replica.serving.certPEM)] = true
		}
		if len(b.trusted) > 3 {
			t.Fatalf("after %s %d CAs are trusted", now.Sub(start), len(b.trusted))
		}
	}
	if len(served) < 10 {
		t.Errorf("only %d certificates were served in ten lifetimes", len(served))
	}
}

func TestAdvance(t *testing.T) {
	p := policy{hosts: hosts, lifetime: 100 * time.Hour}
	fresh, _, _ := advance(t, p, bundle{}, start, noCA)
	renewed, _, _ := advance(t, p, fresh, start.Add(60*time.Hour), noCA)
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }

	t.Run("nothing to do", func(t *testing.T) {
		b, changed, next := advance(t, p, store(t, fresh), at(59), anyCA)
		if changed || b.next != nil || !next.Equal(at(60)) {
			t.Errorf("changed %v, next %v, look again at %s", changed, b.next, next)
		}
	})
	t.Run("renewed", func(t *testing.T) {
		if renewed.next == nil || len(renewed.trusted) != 2 || !renewed.serving.cert.Equal(fresh.serving.cert) {
			t.Errorf("next %v, trusted %d", renewed.next, len(renewed.trusted))
		}
	})
	t.Run("not before it had time", func(t *testing.T) {
		b, changed, next := advance(t, p, store(t, renewed), at(79), anyCA)
		if changed || !b.serving.cert.Equal(fresh.serving.cert) || !next.Equal(at(80)) {
			t.Errorf("changed %v, look again at %s", changed, next)
		}
	})
	t.Run("not before the host knows", func(t *testing.T) {
		if b, changed, _ := advance(t, p, store(t, renewed), at(80), noCA); changed || b.next == nil {
			t.Error("promoted")
		}
	})
	t.Run("promoted", func(t *testing.T) {
		b, changed, _ := advance(t, p, store(t, renewed), at(80), anyCA)
		if !changed || b.next != nil || !b.serving.cert.Equal(renewed.next.cert) || len(b.trusted) != 2 {
			t.Errorf("changed %v, next %v, trusted %d", changed, b.next, len(b.trusted))
		}
		if b, changed, _ = advance(t, p, store(t, b), at(101), anyCA); !changed || len(b.trusted) != 1 {
			t.Errorf("the CA that expired is still trusted: %d", len(b.trusted))
		}
	})
	t.Run("better unknown than expired", func(t *testing.T) {
		if b, _, _ := advance(t, p, store(t, renewed), at(99), noCA); !b.serving.cert.Equal(renewed.next.cert) {
			t.Error("not promoted")
		}
	})
	t.Run("expired", func(t *testing.T) {
		if b, changed, _ := advance(t, p, store(t, fresh), at(200), anyCA); !changed || b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("still serves what expired")
		}
	})
	t.Run("another host name", func(t *testing.T) {
		p := policy{hosts: []string{"other.svc"}, lifetime: p.lifetime}
		if b, changed, _ := advance(t, p, store(t, fresh), at(1), anyCA); !changed || b.serving.cert.VerifyHostname("other.svc") != nil {
			t.Error("the name is not covered")
		}
	})
	t.Run("damaged", func(t *testing.T) {
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			data := fresh.data()
			data[key] = data[key][:len(data[key])/2]
			if b, changed, _ := advance(t, p, readBundle(&corev1.Secret{Data: data}), at(1), anyCA); !changed || b.serving == nil {
				t.Errorf("damaged %s was not replaced", key)
			}
		}
	})
}
