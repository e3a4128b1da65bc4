// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts = []string{"borough-apiserver.borough-system.svc", "borough-apiserver.borough-system.svc.cluster.local"}
)

func anyCA(*x509.Certificate) time.Time { return start }
func noCA(*x509.Certificate) time.Time  { return time.Time{} }

// store puts a bundle into a Secret and reads it back.
func store(t *testing.T, b bundle) bundle {
	t.Helper()
	return readBundle(&corev1.Secret{Data: b.data()})
}

// advance returns the bundle as it has to be, whether that is another, and when
// to look again.
func advance(t *testing.T, p policy, b bundle, now time.Time, trustedSince func(*x509.Certificate) time.Time) (bundle, bool, time.Time) {
	t.Helper()
	advanced, look, err := p.advance(b, now, trustedSince)
	if err != nil {
		t.Fatal(err)
	}
	if !look.After(now) {
		t.Fatalf("at %s the next look is at %s", now, look)
	}
	return advanced, b.serving == nil || !maps.EqualFunc(b.data(), advanced.data(), bytes.Equal), look
}

// TestRotation follows certificates that live a minute for ten of them. The
// APIService gets the CAs only 10 s after they are written, and a replica
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
	// asOf is the bundle as a replica that is that late sees it.
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
		woken := slices.ContainsFunc(history, func(w written) bool { return w.at.Add(late).Equal(now) })
		if woken || !now.Before(next) {
			trustedSince := func(ca *x509.Certificate) time.Time {
				for _, w := range history {
					if since := w.at.Add(late); contains(w.b.trusted, ca) && !now.Before(since) {
						return since
					}
				}
				return time.Time{}
			}
			var changed bool
			if b, changed, next = advance(t, p, store(t, b), now, trustedSince); changed {
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
	t.Run("not before the APIService has the CA", func(t *testing.T) {
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
	t.Run("not before kube-apiserver had time to load the CA", func(t *testing.T) {
		since := at(80).Add(-10 * time.Second)
		known := func(*x509.Certificate) time.Time { return since }
		b, changed, next := advance(t, p, store(t, renewed), at(80), known)
		if changed || b.next == nil || !next.Equal(since.Add(time.Minute)) {
			t.Errorf("changed %v, look again at %s", changed, next)
		}
		if b, _, _ = advance(t, p, b, next, known); b.next != nil {
			t.Error("not promoted")
		}
	})
	t.Run("better old than unknown", func(t *testing.T) {
		if b, _, _ := advance(t, p, store(t, renewed), at(99), noCA); !b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("promoted")
		}
	})
	t.Run("better unknown than expired", func(t *testing.T) {
		if b, _, _ := advance(t, p, store(t, renewed), at(100), noCA); !b.serving.cert.Equal(renewed.next.cert) {
			t.Error("not promoted")
		}
	})
	t.Run("renewed late", func(t *testing.T) {
		late, _, _ := advance(t, p, store(t, fresh), at(98), anyCA)
		b, _, next := advance(t, p, store(t, late), at(98).Add(time.Minute), anyCA)
		if !b.serving.cert.Equal(fresh.serving.cert) || !next.Equal(at(99)) {
			t.Errorf("look again at %s", next)
		}
		if b, _, _ := advance(t, p, store(t, late), at(99), anyCA); !b.serving.cert.Equal(late.next.cert) {
			t.Error("not promoted")
		}
	})
	t.Run("another lifetime", func(t *testing.T) {
		for _, lifetime := range []time.Duration{time.Hour, 10000 * time.Hour} {
			p := policy{hosts: hosts, lifetime: lifetime}
			renewed, _, next := advance(t, p, store(t, fresh), at(60), anyCA)
			if next.After(at(80)) || next.After(renewed.next.cert.NotAfter) {
				t.Errorf("%s: look again at %s", lifetime, next)
			}
			if b, _, _ := advance(t, p, store(t, renewed), next, anyCA); !b.serving.cert.Equal(renewed.next.cert) {
				t.Errorf("%s: not promoted", lifetime)
			}
		}
	})
	t.Run("expired", func(t *testing.T) {
		if b, changed, _ := advance(t, p, store(t, fresh), at(200), anyCA); !changed || b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("still serves what expired")
		}
	})
	// The clock of the replica that made it was ahead.
	t.Run("not valid yet", func(t *testing.T) {
		if b, changed, _ := advance(t, p, store(t, fresh), at(0).Add(-certificates.ClockSkew/2), anyCA); changed || !b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("made again within the skew that certificates allow for")
		}
		b, changed, _ := advance(t, p, store(t, fresh), at(-1), anyCA)
		if !changed || b.serving.cert.NotBefore.After(at(-1)) {
			t.Fatalf("serves what is valid from %s", b.serving.cert.NotBefore)
		}
		// The replica that is ahead serves it, too.
		if b, changed, _ := advance(t, p, store(t, b), at(0), anyCA); changed {
			t.Errorf("replicas whose clocks disagree replace each other's certificates: %v", b.serving.cert.NotBefore)
		}
	})
	t.Run("next not valid yet", func(t *testing.T) {
		if b, _, _ := advance(t, p, store(t, renewed), at(59), anyCA); b.next != nil || !b.serving.cert.Equal(fresh.serving.cert) {
			t.Error("the next one is kept")
		}
	})
	t.Run("another host name", func(t *testing.T) {
		p := policy{hosts: []string{"other.svc"}, lifetime: p.lifetime}
		if b, changed, _ := advance(t, p, store(t, fresh), at(1), anyCA); !changed || b.serving.cert.VerifyHostname("other.svc") != nil {
			t.Error("the name is not covered")
		}
	})
	t.Run("all that is known expired", func(t *testing.T) {
		if b, _, _ := advance(t, p, store(t, renewed), at(161), anyCA); b.next != nil || b.serving.cert.Equal(renewed.next.cert) || len(b.trusted) != 1 {
			t.Errorf("next %v, trusted %d", b.next, len(b.trusted))
		}
	})
}

func TestDamaged(t *testing.T) {
	p := policy{hosts: hosts, lifetime: 100 * time.Hour}
	now := start.Add(61 * time.Hour)
	fresh, _, _ := advance(t, p, bundle{}, start, noCA)
	whole, _, _ := advance(t, p, fresh, start.Add(60*time.Hour), noCA)
	other, _, _ := advance(t, p, bundle{}, now, noCA)
	damages := map[string]func(old []byte) []byte{
		"none":    func([]byte) []byte { return nil },
		"half":    func(old []byte) []byte { return old[:len(old)/2] },
		"garbage": func([]byte) []byte { return []byte("garbage") },
	}
	for key := range whole.data() {
		for name, damage := range damages {
			t.Run(key+" "+name, func(t *testing.T) {
				data := whole.data()
				data[key] = damage(data[key])
				damaged := readBundle(&corev1.Secret{Data: data})

				b, _, _ := advance(t, p, damaged.repaired(whole), now, anyCA)
				if !b.serving.cert.Equal(fresh.serving.cert) || b.next == nil {
					t.Error("what is served was not kept")
				}
				for _, ca := range whole.trusted {
					if !contains(b.trusted, ca) {
						t.Error("what was trusted is not any more")
					}
				}

				// By one who knows nothing.
				b, _, _ = advance(t, p, damaged.repaired(bundle{}), now, anyCA)
				if b.serving == nil || !contains(b.trusted, b.serving.ca) {
					t.Error("nothing is served that is trusted")
				}
			})
		}
	}
	t.Run("a CA that signed something else", func(t *testing.T) {
		data := fresh.data()
		mixed, err := certutil.EncodeCertificates(fresh.serving.cert, other.serving.ca)
		if err != nil {
			t.Fatal(err)
		}
		data[corev1.TLSCertKey] = mixed
		if b := readBundle(&corev1.Secret{Data: data}); b.serving != nil {
			t.Error("it counts as one to serve with")
		}
	})
}
