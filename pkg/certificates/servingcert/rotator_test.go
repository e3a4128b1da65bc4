// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestTwoRotators has one rotator act in the middle of what another one does. One
// wins, the other adopts what it made.
func TestTwoRotators(t *testing.T) {
	t.Run("both fill the Secret", func(t *testing.T) {
		c := newCluster(newAPIService())
		other := c.again()
		a, b := c.rotator(t), other.rotator(t)
		before(&c.client.Fake, "update", "secrets", func() error { return errors.Join(syncNow(t, b), conflict()) })
		runOnce(t, a)
		c.wantInStep(t, a, b)
	})
	t.Run("both replace what is in the Secret", func(t *testing.T) {
		c := newCluster(newAPIService())
		runOnce(t, c.rotator(t))
		c.setSecret(t, map[string][]byte{corev1.TLSCertKey: nil, corev1.TLSPrivateKeyKey: nil})
		other := c.again()
		a, b := c.rotator(t), other.rotator(t)
		before(&c.client.Fake, "update", "secrets", func() error { return errors.Join(syncNow(t, b), conflict()) })
		runOnce(t, a)
		c.wantInStep(t, a, b)
	})
	t.Run("both have a CA trusted", func(t *testing.T) {
		c := newCluster(newAPIService())
		runOnce(t, c.rotator(t))
		c.setSecret(t, nil)
		other := c.again()
		a, b := c.rotator(t), other.rotator(t)
		before(&c.dynamic.Fake, "patch", "apiservices", func() error {
			return errors.Join(syncNow(t, b), conflict()) // for the version that a has read
		})
		runOnce(t, a, b)
		c.wantInStep(t, a, b)
		if got := len(c.trusted(t)); got != 2 {
			t.Errorf("%d CAs are trusted, not those of the certificate and of the one before", got)
		}
	})
}

// TestOrder checks that a certificate is in the Secret only after its CA is in the
// caBundle, also for a rotator that reads in between.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(newAPIService())
		other := c.again()
		a, b := c.rotator(t), other.rotator(t)
		other.client.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			data := action.(clienttesting.UpdateAction).GetObject().(*corev1.Secret).Data
			if got := c.caBundle(t); !bytes.Equal(got, data[trustKey]) {
				t.Error("the Secret is written before the caBundle has its CAs")
			}
			return false, nil, nil
		})
		runOnce(t, b, a)
		time.Sleep(config.Lifetime * 2 / 3)
		var created []byte
		before(&c.client.Fake, "get", "secrets", func() error {
			runOnce(t, b)
			created = b.served().next.certPEM
			return nil
		})
		runOnce(t, a, b)
		if !bytes.Equal(c.secret(t).Data[nextCertKey], created) {
			t.Error("the next certificate was replaced")
		}
		if got := len(c.trusted(t)); got != 2 {
			t.Errorf("%d CAs are trusted", got)
		}
	})
}

// TestSecretNotWritten checks that retries do not replace the CAs that are trusted.
func TestSecretNotWritten(t *testing.T) {
	c := newCluster(newAPIService())
	a, b := c.rotator(t), c.rotator(t)
	runOnce(t, a)
	c.setSecret(t, nil)
	c.client.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), config.Secret.Name, errors.New("no"))
	})
	for range 5 {
		if err := syncNow(t, b); !apierrors.IsForbidden(err) || b.Ready() == nil {
			t.Fatalf("error %v, ready %v, although the Secret cannot be written", err, b.Ready())
		}
	}
	if got := len(c.trusted(t)); got != 2 {
		t.Errorf("%d CAs are trusted, not that of a and one of b", got)
	}
	c.wantTrusted(t, a)
}

// TestCABundleNotWritten starts a rotator that may not write the caBundle, which has a
// CA too many. The certificate in the Secret is trusted all the same.
func TestCABundleNotWritten(t *testing.T) {
	c := newCluster(newAPIService())
	a, b := c.rotator(t), c.rotator(t)
	runOnce(t, a)
	c.setCABundle(t, slices.Concat(c.caBundle(t), encode(foreign(t, maxTrusted))))
	c.dynamic.PrependReactor("patch", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("apiservices"), config.APIService, errors.New("no"))
	})
	if err := syncNow(t, b); !apierrors.IsForbidden(err) || b.Ready() != nil {
		t.Errorf("error %v, ready %v", err, b.Ready())
	}
	c.wantTrusted(t, a, b)
}

// TestReplaceImmediately follows docs/deploy.md: clear the caBundle while no server
// runs.
func TestReplaceImmediately(t *testing.T) {
	c := newCluster(newAPIService())
	runOnce(t, c.rotator(t))
	leaked := c.trusted(t)[0]
	c.setCABundle(t, nil)
	a, b := c.rotator(t), c.rotator(t)
	runOnce(t, a, b)
	c.wantInStep(t, a, b)
	if got := c.trusted(t); len(got) != 1 || contains(got, leaked) {
		t.Errorf("%d CAs are trusted, not only that of the new certificate", len(got))
	}
}

// TestPatchHasVersion checks that a patch names the version of the APIService, by
// which kube-apiserver rejects outdated ones. The fake client does not check it.
func TestPatchHasVersion(t *testing.T) {
	c := newCluster(newAPIService())
	runOnce(t, c.rotator(t))
	for _, action := range c.dynamic.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		var got metav1.PartialObjectMetadata
		if err := json.Unmarshal(patch.GetPatch(), &got); err != nil || got.ResourceVersion != "1" {
			t.Errorf("the patch is %s: %v", patch.GetPatch(), err)
		}
		return
	}
	t.Error("the APIService was not patched")
}

func TestRepair(t *testing.T) {
	c := newCluster(newAPIService())
	a := c.rotator(t)
	runOnce(t, a)
	served, _ := a.CurrentCertKeyContent()
	for name, damage := range map[string]func(t *testing.T){
		"Secret emptied":      func(t *testing.T) { c.setSecret(t, nil) },
		"caBundle of garbage": func(t *testing.T) { c.setCABundle(t, []byte("garbage")) },
		"no caBundle":         func(t *testing.T) { c.setCABundle(t, nil) },
		"all of it": func(t *testing.T) {
			c.setSecret(t, nil)
			c.setCABundle(t, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			damage(t)
			runOnce(t, a)
			c.wantInStep(t, a)
			if now, _ := a.CurrentCertKeyContent(); !bytes.Equal(now, served) {
				t.Error("another certificate is served, without need")
			}
		})
	}
}

// TestNoSecret deletes the Secret. A server that runs serves on, one that starts says
// what is missing, and both continue when the Secret exists again.
func TestNoSecret(t *testing.T) {
	c := newCluster(newAPIService())
	running, starting := c.rotator(t), c.rotator(t)
	runOnce(t, running)
	served := first(running.CurrentCertKeyContent())
	secrets, empty := c.client.CoreV1().Secrets(config.Secret.Namespace), c.secret(t)
	if err := secrets.Delete(t.Context(), empty.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := syncNow(t, running); err == nil || running.Ready() != nil {
		t.Errorf("error %v, ready %v, of a server that runs", err, running.Ready())
	}
	if now := first(running.CurrentCertKeyContent()); !bytes.Equal(now, served) {
		t.Error("another certificate is served")
	}
	c.run(t, starting, t.Context())
	wantReady(t, starting, "the Secret borough-system/borough-apiserver-tls does not exist; apply the manifests")
	c.wantTrusted(t, running)

	empty.Data = nil
	if _, err := secrets.Create(t.Context(), empty, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantReady(t, starting, "")
	runOnce(t, running)
	c.wantTrusted(t, running, starting)
}

// TestUntrustedCertificate checks that a certificate that the APIService does not
// trust is not served if there is another one.
func TestUntrustedCertificate(t *testing.T) {
	c := newCluster(newAPIService())
	a, b := c.rotator(t), c.rotator(t)
	runOnce(t, a)
	served, _ := a.CurrentCertKeyContent()

	c.setSecret(t, nil)
	c.dynamic.PrependReactor("patch", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("apiservices"), config.APIService, errors.New("no"))
	})
	// b does not know what is served, and cannot have another certificate trusted.
	if err := syncNow(t, b); err == nil || b.Ready() == nil {
		t.Errorf("error %v, ready %v, although the APIService cannot be updated", err, b.Ready())
	}
	runOnce(t, a, b)
	c.wantInStep(t, a, b)
	if now, _ := a.CurrentCertKeyContent(); !bytes.Equal(now, served) {
		t.Error("another certificate is served, without need")
	}
}

// TestListener checks that a listener is notified when another certificate is served.
func TestListener(t *testing.T) {
	c := newCluster(newAPIService())
	a, b := c.rotator(t), c.rotator(t)
	runOnce(t, a)
	notified := false
	b.AddListener(listener(func() { notified = true }))
	if runOnce(t, b); !notified {
		t.Error("the listener was not notified")
	}
	c.wantInStep(t, a, b)
}

type listener func()

func (l listener) Enqueue() { l() }

// TestNoAPIService creates the APIService after the server has started.
func TestNoAPIService(t *testing.T) {
	c := newCluster()
	k := c.rotator(t)
	c.run(t, k, t.Context())
	wantReady(t, k, `"v1.tenancy.borough.io" not found`)
	if _, err := c.dynamic.Resource(apiServices).Create(t.Context(), newAPIService(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantReady(t, k, "")
	c.wantInStep(t, k)
}

// TestClusterUnreachable starts before the cluster can be reached: the rotator has a
// certificate to serve with, says what it waits for, and logs it every ten minutes.
func TestClusterUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(newAPIService())
		var reachable atomic.Bool
		c.dynamic.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !reachable.Load(), nil, errors.New("connection refused")
		})
		k := c.rotator(t)
		if _, err := tls.X509KeyPair(k.CurrentCertKeyContent()); err != nil {
			t.Fatalf("there is no certificate to serve with: %v", err)
		}
		if k.Ready() == nil {
			t.Error("ready before the cluster has answered")
		}
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		stop := c.run(t, k, klog.NewContext(t.Context(), logger))
		time.Sleep(15 * time.Minute)
		if err := k.Ready(); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("ready: %v", err)
		}
		attempts := 0
		for _, action := range c.dynamic.Actions() {
			if action.GetVerb() == "get" {
				attempts++
			}
		}
		if attempts < 100 {
			t.Errorf("only %d attempts in 15 minutes", attempts)
		}
		reachable.Store(true)
		wantReady(t, k, "")
		stop()
		c.wantInStep(t, k)
		logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		if got := strings.Count(logged, "connection refused"); got != 2 {
			t.Errorf("logged %d times:\n%s", got, logged)
		}
	})
}

// TestInsecureSkipTLSVerify checks that no caBundle is written while the APIService
// has insecureSkipTLSVerify, with which kube-apiserver rejects one.
func TestInsecureSkipTLSVerify(t *testing.T) {
	c := newCluster(newAPIService())
	insecure := func(value bool) {
		patch := fmt.Appendf(nil, `{"spec": {"insecureSkipTLSVerify": %t, "caBundle": null}}`, value)
		if _, err := c.dynamic.Resource(apiServices).Patch(t.Context(), config.APIService, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running := c.rotator(t)
	runOnce(t, running)
	insecure(true)
	c.dynamic.PrependReactor("patch", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(schema.GroupKind{}, config.APIService, nil)
	})
	// A certificate that cannot be verified by a caBundle is not adopted.
	forged := forge(t, time.Now(), config.Lifetime, asCreated)
	c.setSecret(t, map[string][]byte{corev1.TLSCertKey: forged.certPEM, corev1.TLSPrivateKeyKey: forged.keyPEM})
	restarted := c.rotator(t)
	for _, k := range []*Rotator{running, restarted} {
		runOnce(t, k)
		if err := k.Ready(); err != nil {
			t.Error(err)
		}
	}
	c.dynamic.ReactionChain = c.dynamic.ReactionChain[1:]
	insecure(false)
	runOnce(t, restarted, running)
	c.wantInStep(t, running, restarted)
	if contains(c.trusted(t), forged.ca) {
		t.Error("a CA that was in the Secret is trusted")
	}
}
