// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/borough-io/borough/test/poll"
)

var config = Config{
	Secret:     types.NamespacedName{Namespace: "borough-system", Name: "borough-apiserver-tls"},
	APIService: "v1.tenancy.borough.io",
	Hosts:      hosts,
	Lifetime:   time.Hour,
}

// cluster is the part of the cluster that a Rotator uses: a Secret and an APIService.
type cluster struct {
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

func newCluster(objects ...runtime.Object) cluster {
	return cluster{fake.NewClientset(), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{apiServices: "APIServiceList"}, objects...)}
}

// again is the same cluster through other clients: a fake one serves one request at
// a time.
func (c cluster) again() cluster {
	other := newCluster()
	other.client.PrependReactor("*", "*", clienttesting.ObjectReaction(c.client.Tracker()))
	other.dynamic.PrependReactor("*", "*", clienttesting.ObjectReaction(c.dynamic.Tracker()))
	return other
}

func newAPIService() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": config.APIService, "resourceVersion": "1"},
		"spec":       map[string]any{"group": "tenancy.borough.io", "version": "v1"},
	}}
}

func (c cluster) rotator(t *testing.T) *Rotator {
	t.Helper()
	k, err := NewRotator(config, c.client, c.dynamic)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (c cluster) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := c.client.CoreV1().Secrets(config.Secret.Namespace).Get(t.Context(), config.Secret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func (c cluster) setSecret(t *testing.T, data map[string][]byte) {
	t.Helper()
	secret := c.secret(t)
	secret.Data = data
	if _, err := c.client.CoreV1().Secrets(config.Secret.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) caBundle(t *testing.T) []byte {
	t.Helper()
	service, err := c.dynamic.Resource(apiServices).Get(t.Context(), config.APIService, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c cluster) setCABundle(t *testing.T, text []byte) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": text}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.dynamic.Resource(apiServices).Patch(t.Context(), config.APIService, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// before has something happen when such a request is about to be served. An
// error of it is the answer.
func before(client *clienttesting.Fake, verb, resource string, do func() error) {
	var once sync.Once
	client.PrependReactor(verb, resource, func(clienttesting.Action) (handled bool, _ runtime.Object, err error) {
		once.Do(func() { err = do() })
		return err != nil, nil, err
	})
}

func syncNow(t *testing.T, k *Rotator) error {
	_, err := k.sync(t.Context())
	return err
}

func runOnce(t *testing.T, rotators ...*Rotator) {
	t.Helper()
	for _, k := range rotators {
		if err := syncNow(t, k); err != nil {
			t.Fatal(err)
		}
	}
}

// wantInStep fails the test unless the rotators serve what the Secret holds and
// the APIService trusts it.
func (c cluster) wantInStep(t *testing.T, rotators ...*Rotator) {
	t.Helper()
	secret := c.secret(t)
	for i, k := range rotators {
		if cert, key := k.CurrentCertKeyContent(); !bytes.Equal(cert, secret.Data[corev1.TLSCertKey]) || !bytes.Equal(key, secret.Data[corev1.TLSPrivateKeyKey]) {
			t.Errorf("rotator %d does not serve what the Secret holds", i)
		}
	}
	if got, want := c.caBundle(t), secret.Data[trustKey]; !bytes.Equal(got, want) {
		t.Errorf("the APIService trusts\n%s\nwant\n%s", got, want)
	}
	serving := readBundle(secret).serving
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.caBundle(t))
	if _, err := serving.cert.Verify(x509.VerifyOptions{DNSName: hosts[0], Roots: pool}); err != nil {
		t.Errorf("the APIService does not trust what is served: %v", err)
	}
}

func conflict() error {
	return apierrors.NewConflict(corev1.Resource("any"), "any", errors.New("another client has written it"))
}

// TestTwoRotators has one rotator act in the middle of what another one does. One
// wins, the other adopts what it made.
func TestTwoRotators(t *testing.T) {
	t.Run("both create the Secret", func(t *testing.T) {
		c := newCluster(newAPIService())
		other := c.again()
		a, b := c.rotator(t), other.rotator(t)
		before(&c.client.Fake, "create", "secrets", func() error { return syncNow(t, b) })
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
	t.Run("one deletes while the other writes", func(t *testing.T) {
		c := newCluster(newAPIService())
		runOnce(t, c.rotator(t))
		c.setSecret(t, nil)
		a, other := c.rotator(t), c.again()
		before(&c.client.Fake, "update", "secrets", func() error {
			return other.client.CoreV1().Secrets(config.Secret.Namespace).Delete(t.Context(), config.Secret.Name, metav1.DeleteOptions{})
		})
		runOnce(t, a)
		c.wantInStep(t, a)
	})
	t.Run("one writes an outdated CA", func(t *testing.T) {
		c := newCluster(newAPIService())
		other := c.again()
		a, b := c.rotator(t), other.rotator(t)
		// Before a updates the APIService, b finds the Secret damaged, creates new
		// certificates and updates the APIService.
		before(&c.dynamic.Fake, "patch", "apiservices", func() error {
			other.setSecret(t, nil)
			runOnce(t, b)
			return conflict() // for the version that a has read
		})
		runOnce(t, a, b)
		c.wantInStep(t, a, b)
	})
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
	secrets := c.client.CoreV1().Secrets(config.Secret.Namespace)
	for name, damage := range map[string]func(t *testing.T){
		"Secret deleted": func(t *testing.T) {
			if err := secrets.Delete(t.Context(), config.Secret.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"Secret emptied":      func(t *testing.T) { c.setSecret(t, nil) },
		"caBundle of garbage": func(t *testing.T) { c.setCABundle(t, []byte("garbage")) },
		"no caBundle":         func(t *testing.T) { c.setCABundle(t, nil) },
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
	if err := syncNow(t, b); err == nil { // it knows nothing of what is served
		t.Error("no error although the APIService cannot be updated")
	}
	if err := syncNow(t, a); err == nil {
		t.Error("no error although the APIService cannot be updated")
	}
	if now, _ := a.CurrentCertKeyContent(); !bytes.Equal(now, served) {
		t.Error("serves what the APIService does not trust")
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

// run runs the rotator until the returned function is called, at the latest until the
// test ends.
func (c cluster) run(t *testing.T, k *Rotator, ctx context.Context) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx, 1)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// wantReady waits until the rotator is ready or, with a text, waits for that.
func wantReady(t *testing.T, k *Rotator, text string) {
	t.Helper()
	poll.Eventually(t, func() string {
		err := k.Ready()
		if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			return fmt.Sprintf("ready: %v", err)
		}
		return ""
	})
}

// TestClusterUnreachable starts before the cluster can be reached: the rotator has a
// certificate to serve with, says what it waits for, and logs it once.
func TestClusterUnreachable(t *testing.T) {
	c := newCluster(newAPIService())
	var attempts atomic.Int32
	var reachable atomic.Bool
	c.dynamic.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		attempts.Add(1)
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
	poll.Eventually(t, func() string {
		if attempts.Load() < 4 {
			return "waiting for more attempts"
		}
		return ""
	})
	wantReady(t, k, "connection refused")
	reachable.Store(true)
	wantReady(t, k, "")
	stop()
	c.wantInStep(t, k)
	logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if got := strings.Count(logged, "connection refused"); got != 1 {
		t.Errorf("logged %d times:\n%s", got, logged)
	}
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
	restarted := c.rotator(t)
	for _, k := range []*Rotator{running, restarted} {
		runOnce(t, k)
		if err := k.Ready(); err != nil {
			t.Error(err)
		}
	}
	c.dynamic.ReactionChain = c.dynamic.ReactionChain[1:]
	insecure(false)
	runOnce(t, running, restarted, running)
	c.wantInStep(t, running, restarted)
}
