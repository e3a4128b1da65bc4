// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/authfailure"
	"github.com/borough-io/borough/test/certs"
	"github.com/borough-io/borough/test/poll"
)

// configMaps serves one ConfigMap, or an error.
type configMaps struct {
	mu   sync.Mutex
	data map[string]string
	err  *apierrors.StatusError
}

func (c *configMaps) set(data map[string]string, err *apierrors.StatusError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data, c.err = data, err
}

func (c *configMaps) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	err := c.err
	object := corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ConfigMapNamespace, Name: ConfigMapName, ResourceVersion: "1"}, Data: c.data,
	}
	c.mu.Unlock()
	const all = "/api/v1/namespaces/" + ConfigMapNamespace + "/configmaps"
	query := req.URL.Query()
	var answer any
	switch {
	case err != nil:
	case query.Has("sendInitialEvents"):
		err = apierrors.NewBadRequest("lists are not streamed")
	case query.Has("watch"):
		<-req.Context().Done()
		return
	case req.URL.Path == all:
		answer = corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{object},
		}
	case req.URL.Path == all+"/"+ConfigMapName:
		answer = object
	default:
		err = apierrors.NewForbidden(corev1.Resource("other"), req.URL.Path, nil)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := err.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer = status
		w.WriteHeader(int(status.Code))
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

// newCA returns a CA, as PEM, that is also the certificate of a client.
func newCA(t *testing.T, name string) (string, *x509.Certificate) {
	t.Helper()
	cert, _ := certs.Sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, nil, nil)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})), cert
}

// authenticate returns the user of a request with a certificate and X-Remote-User.
func authenticate(t *testing.T, a *Authenticator, cert *x509.Certificate) string {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	req.Header.Set("X-Remote-User", "alice")
	response, ok, err := a.AuthenticateRequest(req)
	if err != nil || !ok {
		return ""
	}
	return response.User.GetName()
}

// The authenticator waits for the ConfigMap of the cluster, and reports why.
func TestLookup(t *testing.T) {
	frontProxyCA, frontProxy := newCA(t, "front-proxy")
	clientCA, bob := newCA(t, "bob")
	c := &configMaps{err: apierrors.NewForbidden(corev1.Resource("configmaps"), ConfigMapName, nil)}
	server := httptest.NewServer(c)
	defer server.Close()
	defer server.CloseClientConnections()
	a, err := AuthenticatorConfig{Cluster: &rest.Config{Host: server.URL}, Backoff: wait.Backoff{Steps: 1}, Lookup: true}.New()
	if err != nil {
		t.Fatal(err)
	}
	if a.Check(nil) == nil {
		t.Error("ready before the lookup")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	defer func() {
		cancel()
		running.Wait()
	}()
	checkSays := func(want string) {
		t.Helper()
		poll.Eventually(t, func() string {
			if err := a.Check(nil); err == nil || !strings.Contains(err.Error(), want) {
				return "the check says " + errorText(err) + " instead of " + want
			}
			return ""
		})
	}
	checkSays(`waiting for ConfigMap kube-system/extension-apiserver-authentication: configmaps "extension-apiserver-authentication" is forbidden`)
	c.set(map[string]string{"client-ca-file": clientCA}, nil)
	checkSays("kube-apiserver runs without --requestheader-client-ca-file")
	if got := authenticate(t, a, frontProxy); got != "system:anonymous" {
		t.Errorf("the front proxy is %q before its CA is known", got)
	}
	c.set(map[string]string{
		"client-ca-file": clientCA, "requestheader-client-ca-file": frontProxyCA,
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-allowed-names": `["front-proxy"]`,
	}, nil)
	poll.Eventually(t, func() string { return errorText(a.Check(nil)) })
	if got := authenticate(t, a, frontProxy); got != "alice" {
		t.Errorf("the user of the front proxy is %q", got)
	}
	poll.Eventually(t, func() string {
		if got := authenticate(t, a, bob); got != "bob" {
			return "the user with a certificate is " + got
		}
		return ""
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Nothing is looked up if everything is configured.
func TestNoLookup(t *testing.T) {
	ca, frontProxy := newCA(t, "front-proxy")
	content, err := dynamiccertificates.NewStaticCAContent("front-proxy", []byte(ca))
	if err != nil {
		t.Fatal(err)
	}
	config := AuthenticatorConfig{
		Cluster: &rest.Config{Host: "https://127.0.0.1:1"}, Backoff: wait.Backoff{Steps: 1},
		ClientCA: content,
		FrontProxy: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider: content, UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"},
			UIDHeaders: headerrequest.StaticStringSlice{}, GroupHeaders: headerrequest.StaticStringSlice{},
			ExtraHeaderPrefixes: headerrequest.StaticStringSlice{}, AllowedClientNames: headerrequest.StaticStringSlice{},
		},
		Lookup: true,
	}
	a, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(nil); err != nil || len(a.looksUp) > 0 {
		t.Errorf("not ready: %v; %d lookups", err, len(a.looksUp))
	}
	if got := authenticate(t, a, frontProxy); got != "alice" {
		t.Errorf("the user of the front proxy is %q", got)
	}

	config.ClientCA, config.FrontProxy, config.Lookup = nil, nil, false
	if a, err = config.New(); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(nil); err != nil || len(a.looksUp) > 0 || a.FrontProxy != nil {
		t.Errorf("without a lookup: %v; %d lookups", err, len(a.looksUp))
	}
}

// The certificate of a user is verified once, and so is one that is not valid.
func TestClientCertificatesAreCached(t *testing.T) {
	bundle, bob := newCA(t, "bob")
	_, other := newCA(t, "bob")
	var ca changingCA
	ca.set(t, bundle)
	a, err := AuthenticatorConfig{Cluster: &rest.Config{Host: "https://127.0.0.1:1"}, Backoff: wait.Backoff{Steps: 1}, ClientCA: &ca}.New()
	if err != nil {
		t.Fatal(err)
	}
	for want, cert := range map[string]*x509.Certificate{"bob": bob, "": other} {
		ca.verifications = 0
		for range 3 {
			if got := authenticate(t, a, cert); got != want {
				t.Errorf("the user is %q, not %q", got, want)
			}
		}
		if ca.verifications != 1 {
			t.Errorf("the certificate of %q was verified %d times", want, ca.verifications)
		}
	}
}

// Many users with tokens do not wait for one another in the client.
func TestTokenReviewsAreNotLimited(t *testing.T) {
	reviews, err := AuthenticatorConfig{Cluster: &rest.Config{Host: "https://127.0.0.1:1"}}.reviews()
	if err != nil {
		t.Fatal(err)
	}
	if limiter := reviews.RESTClient().GetRateLimiter(); limiter != nil {
		t.Errorf("TokenReviews are limited to %v per second", limiter.QPS())
	}
}

// Clients with invalid tokens cause a bounded number of TokenReviews. A further request
// is answered at once, so that its client retries it.
func TestTokenReviewsAreBounded(t *testing.T) {
	reviewed, answer := make(chan struct{}), make(chan struct{})
	var seen sync.Map // a review that gets no answer for some seconds is sent again
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/tokenreviews") {
			review, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			if _, again := seen.LoadOrStore(string(review), true); !again {
				reviewed <- struct{}{}
			}
			<-answer
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	a, err := AuthenticatorConfig{Cluster: &rest.Config{Host: server.URL}, Backoff: wait.Backoff{Steps: 1}}.New()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	handler := authfailure.WithErrors(filters.WithAuthentication(http.NotFoundHandler(), a, filters.Unauthorized(codecs), nil, nil), codecs)
	send := func(token string) int {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		req = req.WithContext(request.WithRequestInfo(req.Context(), &request.RequestInfo{Path: "/", Verb: "get"}))
		req.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w.Code
	}
	var wg sync.WaitGroup
	for i := range maxTokenReviews {
		wg.Go(func() { send(fmt.Sprint("token-", i)) })
	}
	for range maxTokenReviews {
		<-reviewed
	}
	if code := send("another"); code != http.StatusTooManyRequests {
		t.Errorf("with %d reviews in flight, got %d", maxTokenReviews, code)
	}
	close(answer)
	wg.Wait()
	go func() { <-reviewed }()
	if code := send("another"); code != http.StatusUnauthorized {
		t.Errorf("when the reviews were answered, got %d", code)
	}
}

// A cluster that answers anything has been reached.
func TestReached(t *testing.T) {
	c := &configMaps{}
	server := httptest.NewServer(c)
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := Reached(t.Context(), client); err != nil {
		t.Errorf("forbidden: %v", err)
	}
	c.set(nil, apierrors.NewInternalError(errors.New("x")))
	if err := Reached(t.Context(), client); err == nil {
		t.Error("reached in spite of an error of the cluster")
	}
	server.Close()
	if err := Reached(t.Context(), client); err == nil {
		t.Error("reached without a server")
	}
}
