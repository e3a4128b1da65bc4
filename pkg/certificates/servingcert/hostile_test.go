// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/x509"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// foreign returns CAs that no server has created.
func foreign(t *testing.T, count int) []*x509.Certificate {
	t.Helper()
	var cas []*x509.Certificate
	for range count {
		cas = append(cas, forge(t, time.Now(), config.Lifetime, asCreated).ca)
	}
	return cas
}

// TestHostileSecret has a user who may write the Secret, but not the APIService,
// replace its content. Servers that run serve what they did, one that has just started
// serves a certificate that kube-apiserver trusts, and no CA of the user is trusted.
func TestHostileSecret(t *testing.T) {
	cas := encode(foreign(t, 300))
	contents := map[string]func(t *testing.T, data map[string][]byte){
		"300 CAs": func(_ *testing.T, data map[string][]byte) { data[trustKey] = cas },
		"300 CAs in the chain": func(_ *testing.T, data map[string][]byte) {
			data[corev1.TLSCertKey] = slices.Concat(data[corev1.TLSCertKey], cas)
		},
		"another key": func(_ *testing.T, data map[string][]byte) { data["other"] = []byte("content") },
	}
	add := func(name string, change func(ca, cert *x509.Certificate)) {
		contents[name] = func(t *testing.T, data map[string][]byte) {
			forged := forge(t, time.Now(), config.Lifetime, change)
			data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = forged.certPEM, forged.keyPEM
			data[trustKey] = slices.Concat(data[trustKey], encode([]*x509.Certificate{forged.ca}))
		}
		contents[name+", as the next one"] = func(t *testing.T, data map[string][]byte) {
			contents[name](t, data)
			data[nextCertKey], data[nextKeyKey] = data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
		}
	}
	add("as a server creates it", asCreated)
	for name, tc := range forgeries {
		add(name, tc.change)
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, trustKey, nextCertKey, nextKeyKey} {
		contents["half of "+key] = func(_ *testing.T, data map[string][]byte) { data[key] = data[key][:len(data[key])/4] }
		contents["garbage in "+key] = func(_ *testing.T, data map[string][]byte) { data[key] = []byte("garbage") }
		contents["no "+key] = func(_ *testing.T, data map[string][]byte) { delete(data, key) }
	}
	for name, replace := range contents {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(newAPIService())
				running, restarted := c.rotator(t), c.rotator(t)
				runOnce(t, running)
				time.Sleep(config.Lifetime * 2 / 3) // there is a next certificate
				runOnce(t, running)
				served, trusted := first(running.CurrentCertKeyContent()), c.trusted(t)
				if len(trusted) != 2 {
					t.Fatalf("%d CAs are trusted before", len(trusted))
				}
				hostile := c.secret(t).Data
				replace(t, hostile)

				c.setSecret(t, hostile)
				runOnce(t, running)
				c.wantInStep(t, running)
				if now := first(running.CurrentCertKeyContent()); !bytes.Equal(now, served) {
					t.Error("the running server serves another certificate")
				}

				c.setSecret(t, hostile)
				runOnce(t, restarted, running, restarted)
				c.wantTrusted(t, running, restarted)
				for _, ca := range c.trusted(t) {
					if ca.Subject.CommonName == "forged" {
						t.Error("the caBundle has a CA of the user")
					}
				}
			})
		})
	}
}

// TestHostileCAs has CAs that no server has created in the caBundle, and a pair of one
// of them in the Secret that kube-apiserver does not accept. They leave, what is
// served stays trusted.
func TestHostileCAs(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, c cluster) *Rotator{
		"running": func(t *testing.T, c cluster) *Rotator {
			k := c.rotator(t)
			runOnce(t, k)
			return k
		},
		"starting": func(t *testing.T, c cluster) *Rotator { return c.rotator(t) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(newAPIService())
				k := start(t, c)
				c.setCABundle(t, encode(foreign(t, 300)))
				next, err := k.sync(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.wantInStep(t, k)
				if got := len(c.trusted(t)); got != maxTrusted {
					t.Errorf("%d CAs are trusted", got)
				}
				time.Sleep(time.Until(next))
				runOnce(t, k)
				c.wantInStep(t, k)
				if got := len(c.trusted(t)); got != 1 {
					t.Errorf("%d CAs are trusted after the grace period", got)
				}
			})
		})
	}
}

// TestUnusableCertificate has a certificate in the Secret whose CA the caBundle has,
// but that kube-apiserver does not accept, or that is valid for too long.
func TestUnusableCertificate(t *testing.T) {
	for name, tc := range forgeries {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(newAPIService())
				k := c.rotator(t)
				forged := forge(t, time.Now(), config.Lifetime, tc.change)
				c.setCABundle(t, encode([]*x509.Certificate{forged.ca}))
				c.setSecret(t, map[string][]byte{corev1.TLSCertKey: forged.certPEM, corev1.TLSPrivateKeyKey: forged.keyPEM})
				runOnce(t, k)
				c.wantInStep(t, k)
				if bytes.Equal(first(k.CurrentCertKeyContent()), forged.certPEM) {
					t.Error("it is served")
				}
			})
		})
	}
}

// TestShorterLifetime restarts one of two servers with a shorter lifetime. It replaces
// the certificate, and the old CA stays trusted until no server serves with it.
func TestShorterLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(newAPIService())
		long := c.rotator(t)
		runOnce(t, long)
		before := c.trusted(t)[0]
		short, err := NewRotator(Config{config.Secret, config.APIService, config.Hosts, config.Lifetime / 10}, c.client, c.dynamic)
		if err != nil {
			t.Fatal(err)
		}
		runOnce(t, short)
		replaced := first(short.CurrentCertKeyContent())
		const step = 5 * time.Second
		var adopted bool
		for range 3 * int(config.Lifetime/10/step) {
			runOnce(t, long, short)
			c.wantTrusted(t, long, short)
			adopted = adopted || bytes.Equal(first(long.CurrentCertKeyContent()), replaced)
			time.Sleep(step)
		}
		if !adopted {
			t.Error("the other server has not adopted the certificate")
		}
		if contains(c.trusted(t), before) {
			t.Error("the old CA is still trusted")
		}
	})
}

// TestNoTimeToLoad has another server replace the certificate. The one that runs serves
// what kube-apiserver trusts until kube-apiserver had time to load the new CA.
func TestNoTimeToLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(newAPIService())
		a, b := c.rotator(t), c.rotator(t)
		runOnce(t, a)
		served := first(a.CurrentCertKeyContent())
		c.setSecret(t, nil)
		runOnce(t, b)
		next, err := a.sync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first(a.CurrentCertKeyContent()), served) {
			t.Error("serves the new certificate at once")
		}
		if time.Until(next) > a.policy.settle() {
			t.Errorf("serves the new certificate only at %s", next)
		}
		c.wantTrusted(t, a, b)
		time.Sleep(time.Until(next))
		runOnce(t, a)
		c.wantInStep(t, a, b)
	})
}
