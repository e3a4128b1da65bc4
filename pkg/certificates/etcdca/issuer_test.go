// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdca

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/certificates"
)

const (
	host     = "borough-etcd-0.borough-etcd.borough-system.svc"
	lifetime = 90 * 24 * time.Hour
)

func name(secret string) types.NamespacedName {
	return types.NamespacedName{Namespace: "borough-system", Name: secret}
}

func newConfig() Config {
	return Config{CA: name("ca"), Member: name("member"), Client: name("client"), Hosts: []string{host}, Lifetime: lifetime}
}

// secrets are the Secrets in a cluster, which rejects an update that is based on an
// old version.
type secrets struct{ *fake.Clientset }

func newSecrets() secrets {
	var objects []runtime.Object
	for _, secret := range []string{"ca", "member", "client"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "borough-system", Name: secret, ResourceVersion: "1"}})
	}
	s := secrets{fake.NewClientset(objects...)}
	var mu sync.Mutex
	version := 1
	s.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		updated := action.(clienttesting.UpdateAction).GetObject().(*corev1.Secret).DeepCopy()
		before, err := s.Tracker().Get(action.GetResource(), updated.Namespace, updated.Name)
		if err != nil {
			return true, nil, err
		}
		if before.(*corev1.Secret).ResourceVersion != updated.ResourceVersion {
			return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), updated.Name, errors.New("it has changed"))
		}
		version++
		updated.ResourceVersion = fmt.Sprint(version)
		return true, updated, s.Tracker().Update(action.GetResource(), updated, updated.Namespace)
	})
	return s
}

func (s secrets) get(t *testing.T, secret string) *corev1.Secret {
	t.Helper()
	found, err := s.CoreV1().Secrets("borough-system").Get(t.Context(), secret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s secrets) set(t *testing.T, secret string, data map[string][]byte) {
	t.Helper()
	found := s.get(t, secret)
	found.Data = data
	if _, err := s.CoreV1().Secrets("borough-system").Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s secrets) all(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	all := map[string]map[string][]byte{}
	for _, secret := range []string{"ca", "member", "client"} {
		all[secret] = s.get(t, secret).Data
	}
	return all
}

func (s secrets) issuer(t *testing.T, config Config) *Issuer {
	t.Helper()
	i, err := New(config, s)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// issue has an issuer with this config bring the Secrets up to date.
func (s secrets) issue(t *testing.T, config Config) (next time.Time) {
	t.Helper()
	next, err := s.issuer(t, config).sync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func (s secrets) pair(t *testing.T, secret string) certificates.Pair {
	t.Helper()
	data := s.get(t, secret).Data
	pair, err := certificates.ParsePEM(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatalf("%s: %v", secret, err)
	}
	return pair
}

// verify fails the test unless members and clients verify one another, with the CA in
// the Secrets or another.
func (s secrets) verify(t *testing.T, ca ...*x509.Certificate) {
	t.Helper()
	for secret, usages := range map[string][]x509.ExtKeyUsage{
		"member": {x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		"client": {x509.ExtKeyUsageClientAuth},
	} {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(s.get(t, secret).Data[caCertKey]) {
			t.Fatalf("%s: no CA", secret)
		}
		if len(ca) > 0 {
			roots = x509.NewCertPool()
			roots.AddCert(ca[0])
		}
		cert := s.pair(t, secret).Cert
		for _, usage := range usages {
			options := x509.VerifyOptions{Roots: roots, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage}}
			if usage == x509.ExtKeyUsageServerAuth {
				options.DNSName = host
			}
			if _, err := cert.Verify(options); err != nil {
				t.Errorf("%s: %v", secret, err)
			}
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now()}); secret == "client" && err == nil {
			t.Error("the certificate of clients is also valid for a server")
		}
	}
}

func TestIssue(t *testing.T) {
	s := newSecrets()
	next := s.issue(t, newConfig())
	s.verify(t)
	if at := time.Until(next); at < lifetime*55/100 || at > lifetime*65/100 {
		t.Errorf("renewed in %s", at)
	}
	if ca := s.get(t, "ca").Data; len(ca) != 2 {
		t.Errorf("the Secret of the CA has %d keys", len(ca))
	}
	for _, secret := range []string{"member", "client"} {
		if bytes.Contains(s.get(t, secret).Data[corev1.TLSPrivateKeyKey], s.get(t, "ca").Data[corev1.TLSPrivateKeyKey]) {
			t.Errorf("the Secret %s has the key of the CA", secret)
		}
	}
	before := s.all(t)
	s.issue(t, newConfig())
	if after := s.all(t); !equal(before, after) {
		t.Error("certificates that can be used were replaced")
	}
}

func equal(a, b map[string]map[string][]byte) bool {
	return maps.EqualFunc(a, b, func(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) })
}

// TestReplaced changes the config, or what is in a Secret.
func TestReplaced(t *testing.T) {
	for _, tc := range []struct {
		name     string
		change   func(*testing.T, secrets, *Config)
		replaced []string
	}{
		{"another member", func(_ *testing.T, _ secrets, c *Config) { c.Hosts = append(c.Hosts, "borough-etcd-1") }, []string{"member"}},
		{"shorter lifetime", func(_ *testing.T, _ secrets, c *Config) { c.Lifetime = time.Hour }, []string{"member", "client"}},
		{"longer lifetime", func(_ *testing.T, _ secrets, c *Config) { c.Lifetime *= 2 }, nil},
		{"empty", func(t *testing.T, s secrets, _ *Config) { s.set(t, "client", nil) }, []string{"client"}},
		{"no key", func(t *testing.T, s secrets, _ *Config) {
			data := s.get(t, "member").Data
			delete(data, corev1.TLSPrivateKeyKey)
			s.set(t, "member", data)
		}, []string{"member"}},
		{"the key of another certificate", func(t *testing.T, s secrets, _ *Config) {
			data := s.get(t, "member").Data
			data[corev1.TLSPrivateKeyKey] = s.get(t, "client").Data[corev1.TLSPrivateKeyKey]
			s.set(t, "member", data)
		}, []string{"member"}},
		{"garbage", func(t *testing.T, s secrets, _ *Config) {
			s.set(t, "client", map[string][]byte{corev1.TLSCertKey: []byte("garbage")})
		}, []string{"client"}},
		{"the certificate of the client", func(t *testing.T, s secrets, _ *Config) { s.set(t, "member", s.get(t, "client").Data) }, []string{"member"}},
		{"a certificate of another CA", func(t *testing.T, s secrets, c *Config) {
			other := newSecrets()
			other.issue(t, *c)
			s.set(t, "member", other.get(t, "member").Data)
		}, []string{"member"}},
		{"no CA certificate", func(t *testing.T, s secrets, _ *Config) {
			data := s.get(t, "client").Data
			delete(data, caCertKey)
			s.set(t, "client", data)
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, config := newSecrets(), newConfig()
			s.issue(t, config)
			before := map[string]certificates.Pair{"ca": s.pair(t, "ca"), "member": s.pair(t, "member"), "client": s.pair(t, "client")}
			tc.change(t, s, &config)
			s.issue(t, config)
			s.verify(t)
			for secret, pair := range before {
				replaced := !s.pair(t, secret).Cert.Equal(pair.Cert)
				if want := strings.Contains(strings.Join(tc.replaced, " "), secret); replaced != want {
					t.Errorf("%s: replaced: %v, want %v", secret, replaced, want)
				}
			}
		})
	}
}

// TestKept damages the Secret of the CA, which must not be replaced while there are
// certificates that it has signed.
func TestKept(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(*testing.T, secrets)
		want   string
	}{
		{"empty", func(t *testing.T, s secrets) { s.set(t, "ca", nil) }, "the Secret borough-system/ca is empty, but borough-system/member has a certificate"},
		{"garbage", func(t *testing.T, s secrets) {
			s.set(t, "ca", map[string][]byte{corev1.TLSCertKey: []byte("garbage")})
		}, "has no CA that can be used: parse the certificate"},
		{"no key", func(t *testing.T, s secrets) {
			s.set(t, "ca", map[string][]byte{corev1.TLSCertKey: s.get(t, "ca").Data[corev1.TLSCertKey]})
		}, "has no CA that can be used: parse the key"},
		{"no CA", func(t *testing.T, s secrets) { s.set(t, "ca", s.get(t, "member").Data) }, "not that of a CA"},
		{"not valid yet", func(t *testing.T, s secrets) {
			ca, err := s.pair(t, "ca").RenewCA(time.Now().Add(time.Hour), time.Now().Add(caLifetime))
			if err != nil {
				t.Fatal(err)
			}
			certPEM, keyPEM, err := ca.EncodePEM()
			if err != nil {
				t.Fatal(err)
			}
			s.set(t, "ca", map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM})
		}, "is not valid before"},
		{"missing", func(t *testing.T, s secrets) {
			if err := s.CoreV1().Secrets("borough-system").Delete(t.Context(), "client", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "the Secret borough-system/client does not exist; apply the manifests"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSecrets()
			s.issue(t, newConfig())
			tc.damage(t, s)
			member := s.get(t, "member").Data
			ca := s.get(t, "ca").Data
			if _, err := s.issuer(t, newConfig()).sync(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if !maps.EqualFunc(member, s.get(t, "member").Data, bytes.Equal) || !maps.EqualFunc(ca, s.get(t, "ca").Data, bytes.Equal) {
				t.Error("a Secret was changed")
			}
		})
	}
}

// TestReplaceAll empties all Secrets, as the documentation says for a key that leaked.
func TestReplaceAll(t *testing.T) {
	s := newSecrets()
	s.issue(t, newConfig())
	before := s.pair(t, "ca")
	for _, secret := range []string{"ca", "member", "client"} {
		s.set(t, secret, nil)
	}
	s.issue(t, newConfig())
	s.verify(t)
	if s.pair(t, "ca").Cert.CheckSignatureFrom(before.Cert) == nil {
		t.Error("the CA has the same key")
	}
}

// TestTwoIssuers runs two issuers at the same time, as when a Lease is lost.
func TestTwoIssuers(t *testing.T) {
	for range 50 {
		s := newSecrets()
		var issuers sync.WaitGroup
		for range 2 {
			i := s.issuer(t, newConfig())
			issuers.Go(func() {
				_, err := i.sync(t.Context())
				for apierrors.IsConflict(err) {
					_, err = i.sync(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		issuers.Wait()
		s.verify(t)
	}
}

// TestRenewal runs an issuer for 25 years. All certificates are always valid, also for
// a member that was started with the previous certificate of the CA.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecrets()
		i := s.issuer(t, newConfig())
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
		done := make(chan struct{})
		go func() {
			defer close(done)
			i.Run(ctx)
		}()
		synctest.Wait()
		ca := s.pair(t, "ca")
		cas, leaves := map[string]bool{}, map[string]bool{}
		const day = 24 * time.Hour
		for range 25 * 365 / 15 {
			time.Sleep(15 * day)
			synctest.Wait()
			s.verify(t)
			if time.Until(ca.Cert.NotAfter) < 30*day {
				ca = s.pair(t, "ca") // restarted in time
			}
			s.verify(t, ca.Cert)
			cas[string(s.pair(t, "ca").Cert.Raw)] = true
			leaves[string(s.pair(t, "client").Cert.Raw)] = true
			if left := time.Until(s.pair(t, "member").Cert.NotAfter); left < lifetime*20/100 {
				t.Fatalf("the certificate of the members is valid for %s only", left)
			}
		}
		if len(cas) != 5 || len(leaves) < 160 || len(leaves) > 175 {
			t.Errorf("%d certificates of the CA, %d of clients", len(cas), len(leaves))
		}
		cancel()
		<-done
	})
}

// TestAdopt starts with the Secrets of cert-manager.
func TestAdopt(t *testing.T) {
	s := newSecrets()
	ca, err := certificates.NewCA("borough-etcd-ca", time.Now(), time.Now().Add(5*365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := ca.EncodePEM()
	if err != nil {
		t.Fatal(err)
	}
	s.set(t, "ca", map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM, caCertKey: certPEM})
	s.issue(t, newConfig())
	s.verify(t, ca.Cert)
	if got, err := certutil.ParseCertsPEM(s.get(t, "ca").Data[corev1.TLSCertKey]); err != nil || !got[0].Equal(ca.Cert) {
		t.Errorf("the CA was replaced (%v)", err)
	}
}
