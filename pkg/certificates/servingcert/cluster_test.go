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
	"fmt"
	"strings"
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
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/test/poll"
)

var config = Config{
	Secret:     types.NamespacedName{Namespace: "borough-system", Name: "borough-apiserver-tls"},
	APIService: "v1.tenancy.borough.io",
	Hosts:      hosts,
	Lifetime:   time.Hour,
}

// cluster is the part of the cluster that a Rotator uses: a Secret, which is empty at
// first, and an APIService.
type cluster struct {
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

func newCluster(objects ...runtime.Object) cluster {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: config.Secret.Namespace, Name: config.Secret.Name}}
	return cluster{fake.NewClientset(secret), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
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

// runOnce has each rotator sync, again after a conflict.
func runOnce(t *testing.T, rotators ...*Rotator) {
	t.Helper()
	for _, k := range rotators {
		err := syncNow(t, k)
		for apierrors.IsConflict(err) {
			err = syncNow(t, k)
		}
		if err != nil {
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
	c.wantTrusted(t, rotators...)
}

// wantTrusted fails the test unless kube-apiserver, with the caBundle, verifies what
// the rotators serve.
func (c cluster) wantTrusted(t *testing.T, rotators ...*Rotator) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.caBundle(t))
	for i, k := range rotators {
		served, err := certutil.ParseCertsPEM(first(k.CurrentCertKeyContent()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := served[0].Verify(x509.VerifyOptions{DNSName: hosts[0], Roots: pool, CurrentTime: time.Now()}); err != nil {
			t.Errorf("the APIService does not trust what rotator %d serves: %v", i, err)
		}
	}
}

func first(cert, _ []byte) []byte { return cert }

func conflict() error {
	return apierrors.NewConflict(corev1.Resource("any"), "any", errors.New("another client has written it"))
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

// trusted returns the CAs in the caBundle.
func (c cluster) trusted(t *testing.T) []*x509.Certificate {
	t.Helper()
	text := c.caBundle(t)
	if len(text) == 0 {
		return nil
	}
	cas, err := certutil.ParseCertsPEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return cas
}
