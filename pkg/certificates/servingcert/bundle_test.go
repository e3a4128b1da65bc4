// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/borough-io/borough/pkg/certificates"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts = []string{"borough-apiserver.borough-system.svc", "borough-apiserver.borough-system.svc.cluster.local"}
)

func anyCA(*x509.Certificate) time.Time { return start }
func noCA(*x509.Certificate) time.Time  { return time.Time{} }

// advance returns the bundle as it has to be, whether that is another, and when
// to look again.
func advance(t *testing.T, p policy, b bundle, now time.Time, trustedSince func(*x509.Certificate) time.Time) (bundle, bool, time.Time) {
	t.Helper()
	advanced, look, err := p.advance(b, now, trustedSince, p.create)
	if err != nil {
		t.Fatal(err)
	}
	if !look.After(now) {
		t.Fatalf("at %s the next look is at %s", now, look)
	}
	return advanced, b.serving == nil || !maps.EqualFunc(b.data(nil), advanced.data(nil), bytes.Equal), look
}

// TestRotation follows certificates that live a minute for ten of them.
// kube-apiserver loads the CAs only 10 s after they are written, and a replica
// serves what it should 10 s late; still, what is served is always trusted and
// valid.
func TestRotation(t *testing.T) {
	const late = 10 * time.Second
	p := policy{hosts: hosts, lifetime: time.Minute}
	type written struct {
		at  time.Time
		b   bundle
		cas []*x509.Certificate
	}
	var history []written
	// asOf is what was written that long ago.
	asOf := func(now time.Time, late time.Duration) written {
		seen := history[0]
		for _, w := range history {
			if !w.at.After(now.Add(-late)) {
				seen = w
			}
		}
		return seen
	}

	var b bundle
	var trusts trust
	var next time.Time
	served := map[string]bool{}
	for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(time.Second) {
		if !now.Before(next) {
			if len(history) > 0 {
				trusts.observe(history[len(history)-1].cas, now)
			}
			b, _, _ = advance(t, p, b, now, trusts.trustedSince)
			cas, change := trusts.want(b.cas(), p.grace(), now)
			history = append(history, written{now, b, cas})
			// Each write wakes the replica.
			trusts.observe(cas, now)
			b, _, next = advance(t, p, b, now, trusts.trustedSince)
			next = earliest(next, change)
			if len(cas) > maxTrusted {
				t.Fatalf("after %s %d CAs are trusted", now.Sub(start), len(cas))
			}
		}
		if now.Before(start.Add(late)) {
			continue // kube-apiserver has no CA yet
		}
		for _, kubeAPIServer := range []time.Duration{0, late} {
			pool := x509.NewCertPool()
			for _, ca := range asOf(now, kubeAPIServer).cas {
				pool.AddCert(ca)
			}
			for _, replica := range []time.Duration{0, late} {
				serving := asOf(now, replica).b.serving
				for _, host := range hosts {
					if _, err := serving.cert.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: now}); err != nil {
						t.Fatalf("after %s, %s late, with the CAs of %s ago: %v", now.Sub(start), replica, kubeAPIServer, err)
					}
				}
				served[string(serving.certPEM)] = true
			}
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
		b, changed, next := advance(t, p, fresh, at(59), anyCA)
		if changed || b.next != nil || !next.Equal(at(60)) {
			t.Errorf("changed %v, next %v, look again at %s", changed, b.next, next)
		}
	})
	t.Run("renewed", func(t *testing.T) {
		if renewed.next == nil || !renewed.serving.cert.Equal(fresh.serving.cert) {
			t.Errorf("next %v", renewed.next)
		}
	})
	t.Run("not before it had time", func(t *testing.T) {
		b, changed, next := advance(t, p, renewed, at(79), anyCA)
		if changed || !b.serving.cert.Equal(fresh.serving.cert) || !next.Equal(at(80)) {
			t.Errorf("changed %v, look again at %s", changed, next)
		}
	})
	t.Run("not before the APIService has the CA", func(t *testing.T) {
		if b, changed, _ := advance(t, p, renewed, at(80), noCA); changed || b.next == nil {
			t.Error("promoted")
		}
	})
	t.Run("promoted", func(t *testing.T) {
		b, changed, _ := advance(t, p, renewed, at(80), anyCA)
		if !changed || b.next != nil || !b.serving.cert.Equal(renewed.next.cert) {
			t.Errorf("changed %v, next %v", changed, b.next)
		}
	})
	t.Run("not before kube-apiserver had time to load the CA", func(t *testing.T) {
		since := at(80).Add(-10 * time.Second)
		known := func(*x509.Certificate) time.Time { return since }
		b, changed, next := advance(t, p, renewed, at(80), known)
		if changed || b.next == nil || !next.Equal(since.Add(time.Minute)) {
			t.Errorf("changed %v, look again at %s", changed, next)
		}
		if b, _, _ = advance(t, p, b, next, known); b.next != nil {
			t.Error("not promoted")
		}
	})
	t.Run("better old than unknown", func(t *testing.T) {
		if b, _, _ := advance(t, p, renewed, at(99), noCA); !b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("promoted")
		}
	})
	t.Run("better unknown than expired", func(t *testing.T) {
		if b, _, _ := advance(t, p, renewed, at(100), noCA); !b.serving.cert.Equal(renewed.next.cert) {
			t.Error("not promoted")
		}
	})
	t.Run("renewed late", func(t *testing.T) {
		late, _, _ := advance(t, p, fresh, at(98), anyCA)
		b, _, next := advance(t, p, late, at(98).Add(time.Minute), anyCA)
		if !b.serving.cert.Equal(fresh.serving.cert) || !next.Equal(at(99)) {
			t.Errorf("look again at %s", next)
		}
		if b, _, _ := advance(t, p, late, at(99), anyCA); !b.serving.cert.Equal(late.next.cert) {
			t.Error("not promoted")
		}
	})
	t.Run("another lifetime of the policy", func(t *testing.T) {
		p := policy{hosts: hosts, lifetime: 10000 * time.Hour}
		renewed, _, next := advance(t, p, fresh, at(60), anyCA)
		if !next.Equal(at(80)) {
			t.Errorf("longer: look again at %s", next)
		}
		if b, _, _ := advance(t, p, renewed, next, anyCA); !b.serving.cert.Equal(renewed.next.cert) {
			t.Error("longer: not promoted")
		}
		p.lifetime = 99 * time.Hour
		if b, _, _ := advance(t, p, fresh, at(1), anyCA); b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("shorter: still served")
		}
	})
	t.Run("expired", func(t *testing.T) {
		if b, changed, _ := advance(t, p, fresh, at(200), anyCA); !changed || b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("still serves what expired")
		}
	})
	// The clock of the replica that made it was ahead.
	t.Run("not valid yet", func(t *testing.T) {
		if b, changed, _ := advance(t, p, fresh, at(0).Add(-certificates.ClockSkew/2), anyCA); changed || !b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("made again within the skew that certificates allow for")
		}
		b, changed, _ := advance(t, p, fresh, at(-1), anyCA)
		if !changed || b.serving.cert.NotBefore.After(at(-1)) {
			t.Fatalf("serves what is valid from %s", b.serving.cert.NotBefore)
		}
		// The replica that is ahead serves it, too.
		if b, changed, _ := advance(t, p, b, at(0), anyCA); changed {
			t.Errorf("replicas whose clocks disagree replace each other's certificates: %v", b.serving.cert.NotBefore)
		}
	})
	t.Run("next not valid yet", func(t *testing.T) {
		if b, _, _ := advance(t, p, renewed, at(59), anyCA); b.next != nil || !b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("the next one is kept")
		}
	})
	t.Run("another host name", func(t *testing.T) {
		p := policy{hosts: []string{"other.svc"}, lifetime: p.lifetime}
		if b, changed, _ := advance(t, p, fresh, at(1), anyCA); !changed || b.serving.cert.VerifyHostname("other.svc") != nil {
			t.Error("the name is not covered")
		}
	})
	t.Run("all that is known expired", func(t *testing.T) {
		if b, _, _ := advance(t, p, renewed, at(161), anyCA); b.next != nil || b.serving.cert.Equal(renewed.next.cert) {
			t.Errorf("next %v", b.next)
		}
	})
}
