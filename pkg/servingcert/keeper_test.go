// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
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
)

var config = Config{
	Secret:     types.NamespacedName{Namespace: "borough-system", Name: "borough-apiserver-tls"},
	APIService: "v1.tenancy.borough.io",
	Hosts:      hosts,
	Lifetime:   time.Hour,
}

// host is what a Keeper knows of a host cluster: a Secret and an APIService.
type host struct {
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

func newHost(objects ...runtime.Object) host {
	return host{fake.NewClientset(), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{apiServices: "APIServiceList"}, objects...)}
}

// again is the same host through other clients: a fake one serves one request at
// a time.
func (h host) again() host {
	other := newHost()
	other.client.PrependReactor("*", "*", clienttesting.ObjectReaction(h.client.Tracker()))
	other.dynamic.PrependReactor("*", "*", clienttesting.ObjectReaction(h.dynamic.Tracker()))
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

func (h host) keeper(t *testing.T) *Keeper {
	t.Helper()
	k, err := NewKeeper(config, h.client, h.dynamic)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (h host) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := h.client.CoreV1().Secrets(config.Secret.Namespace).Get(t.Context(), config.Secret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func (h host) setSecret(t *testing.T, data map[string][]byte) {
	t.Helper()
	secret := h.secret(t)
	secret.Data = data
	if _, err := h.client.CoreV1().Secrets(config.Secret.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (h host) caBundle(t *testing.T) []byte {
	t.Helper()
	service, err := h.dynamic.Resource(apiServices).Get(t.Context(), config.APIService, metav1.GetOptions{})
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

func (h host) setCABundle(t *testing.T, text []byte) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": text}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.dynamic.Resource(apiServices).Patch(t.Context(), config.APIService, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
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

func runOnce(t *testing.T, keepers ...*Keeper) {
	t.Helper()
	for _, k := range keepers {
		if err := k.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// wantInStep fails the test unless the keepers serve what the Secret holds and
// the host trusts it.
func (h host) wantInStep(t *testing.T, keepers ...*Keeper) {
	t.Helper()
	secret := h.secret(t)
	for i, k := range keepers {
		if cert, key := k.CurrentCertKeyContent(); !bytes.Equal(cert, secret.Data[corev1.TLSCertKey]) || !bytes.Equal(key, secret.Data[corev1.TLSPrivateKeyKey]) {
			t.Errorf("keeper %d does not serve what the Secret holds", i)
		}
	}
	if got, want := h.caBundle(t), secret.Data[trustKey]; !bytes.Equal(got, want) {
		t.Errorf("the host trusts\n%s\nwant\n%s", got, want)
	}
	serving := readBundle(secret).serving
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(h.caBundle(t))
	if _, err := serving.cert.Verify(x509.VerifyOptions{DNSName: hosts[0], Roots: pool}); err != nil {
		t.Errorf("the host does not trust what is served: %v", err)
	}
}

func conflict() error {
	return apierrors.NewConflict(corev1.Resource("any"), "any", errors.New("somebody was faster"))
}

// TestTwoKeepers has one keeper act in the middle of what another one does. One
// wins, the other adopts what it made.
func TestTwoKeepers(t *testing.T) {
	t.Run("both create the Secret", func(t *testing.T) {
		h := newHost(newAPIService())
		other := h.again()
		a, b := h.keeper(t), other.keeper(t)
		before(&h.client.Fake, "create", "secrets", func() error { return b.RunOnce(t.Context()) })
		runOnce(t, a)
		h.wantInStep(t, a, b)
	})
	t.Run("both replace what is in the Secret", func(t *testing.T) {
		h := newHost(newAPIService())
		runOnce(t, h.keeper(t))
		h.setSecret(t, map[string][]byte{corev1.TLSCertKey: nil, corev1.TLSPrivateKeyKey: nil})
		other := h.again()
		a, b := h.keeper(t), other.keeper(t)
		before(&h.client.Fake, "update", "secrets", func() error { return errors.Join(b.RunOnce(t.Context()), conflict()) })
		runOnce(t, a)
		h.wantInStep(t, a, b)
	})
	t.Run("one deletes while the other writes", func(t *testing.T) {
		h := newHost(newAPIService())
		runOnce(t, h.keeper(t))
		h.setSecret(t, nil)
		a, other := h.keeper(t), h.again()
		before(&h.client.Fake, "update", "secrets", func() error {
			return other.client.CoreV1().Secrets(config.Secret.Namespace).Delete(t.Context(), config.Secret.Name, metav1.DeleteOptions{})
		})
		runOnce(t, a)
		h.wantInStep(t, a)
	})
	t.Run("one tells the host what is outdated", func(t *testing.T) {
		h := newHost(newAPIService())
		other := h.again()
		a, b := h.keeper(t), other.keeper(t)
		// While a is about to tell, b finds the Secret damaged, makes all anew
		// and tells the host.
		before(&h.dynamic.Fake, "patch", "apiservices", func() error {
			other.setSecret(t, nil)
			runOnce(t, b)
			return conflict() // for the version that a has read
		})
		runOnce(t, a, b)
		h.wantInStep(t, a, b)
	})
}

// TestPatchSaysItsVersion is what makes the host refuse what is outdated; the
// fake one does not care.
func TestPatchSaysItsVersion(t *testing.T) {
	h := newHost(newAPIService())
	runOnce(t, h.keeper(t))
	for _, action := range h.dynamic.Actions() {
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
	h := newHost(newAPIService())
	a := h.keeper(t)
	runOnce(t, a)
	served, _ := a.CurrentCertKeyContent()
	secrets := h.client.CoreV1().Secrets(config.Secret.Namespace)
	for name, damage := range map[string]func(t *testing.T){
		"Secret deleted": func(t *testing.T) {
			if err := secrets.Delete(t.Context(), config.Secret.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"Secret emptied":      func(t *testing.T) { h.setSecret(t, nil) },
		"caBundle of garbage": func(t *testing.T) { h.setCABundle(t, []byte("garbage")) },
		"no caBundle":         func(t *testing.T) { h.setCABundle(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			damage(t)
			runOnce(t, a)
			h.wantInStep(t, a)
			if now, _ := a.CurrentCertKeyContent(); !bytes.Equal(now, served) {
				t.Error("another certificate is served, without need")
			}
		})
	}
}

// TestUntoldHost: what the host does not trust is not served as long as there is
// something else.
func TestUntoldHost(t *testing.T) {
	h := newHost(newAPIService())
	a, b := h.keeper(t), h.keeper(t)
	runOnce(t, a)
	served, _ := a.CurrentCertKeyContent()

	h.setSecret(t, nil)
	h.dynamic.PrependReactor("patch", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("apiservices"), config.APIService, errors.New("no"))
	})
	if err := b.RunOnce(t.Context()); err == nil { // it knows nothing of what is served
		t.Error("no error when the host can't be told")
	}
	if err := a.RunOnce(t.Context()); err == nil {
		t.Error("no error when the host can't be told")
	}
	if now, _ := a.CurrentCertKeyContent(); !bytes.Equal(now, served) {
		t.Error("serves what the host does not trust")
	}
}

// TestNoAPIService: it may come later than the server.
func TestNoAPIService(t *testing.T) {
	h := newHost()
	k := h.keeper(t)
	enqueued := make(chan struct{}, 1)
	k.AddListener(listener(func() { enqueued <- struct{}{} }))
	runOnce(t, k)
	<-enqueued

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx, 1)
	}()
	told := make(chan struct{})
	before(&h.dynamic.Fake, "patch", "apiservices", func() error { close(told); return nil })
	if _, err := h.dynamic.Resource(apiServices).Create(ctx, newAPIService(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-told
	cancel()
	<-done
	h.wantInStep(t, k)
}

type listener func()

func (l listener) Enqueue() { l() }
