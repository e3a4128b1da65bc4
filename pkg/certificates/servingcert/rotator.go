// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/certificates/reconcile"
)

// Config has the names of the objects and the parameters of the certificates.
type Config struct {
	// Secret holds the certificate.
	Secret types.NamespacedName
	// APIService is the name of the APIService whose caBundle is kept up to date.
	APIService string
	// Hosts are the DNS names of the server. The first one is the common name.
	Hosts []string
	// Lifetime of a certificate. The next one is created after 60 % of it.
	Lifetime time.Duration
}

// Rotator creates and renews the certificate. Each replica runs one.
type Rotator struct {
	config  Config
	policy  policy
	client  kubernetes.Interface
	dynamic dynamic.Interface
	loop    *reconcile.Loop
	trust   trust // used by sync

	mu sync.Mutex
	// bundle has the certificate that is served, and the next one. kube-apiserver has
	// trusted them.
	bundle bundle
	// created is a certificate that is not in the Secret yet. It is served as long as
	// there is no other.
	created   *pair
	insecure  bool  // the APIService has insecureSkipTLSVerify
	err       error // of the last sync
	listeners []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Rotator{}
	_ dynamiccertificates.ControllerRunner       = &Rotator{}
)

// NewRotator returns a Rotator. Until Run has reached the cluster, it serves a
// temporary certificate, which the cluster does not trust.
func NewRotator(config Config, client kubernetes.Interface, dynamic dynamic.Interface) (*Rotator, error) {
	r := &Rotator{
		config:  config,
		policy:  policy{hosts: config.Hosts, lifetime: config.Lifetime},
		client:  client,
		dynamic: dynamic,
		err:     errors.New("the cluster has not answered yet"),
	}
	if _, err := r.create(time.Now()); err != nil {
		return nil, fmt.Errorf("create a temporary serving certificate: %w", err)
	}
	r.loop = reconcile.NewLoop("Failed to update the serving certificate, will retry until it succeeds", r.sync)
	if err := r.loop.WatchSecret(client, config.Secret); err != nil {
		return nil, err
	}
	services := dynamic.Resource(apiServices)
	if err := r.loop.Watch(&unstructured.Unstructured{}, config.APIService, dynamic,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return services.List(ctx, o) },
		services.Watch); err != nil {
		return nil, err
	}
	return r, nil
}

// Name identifies the certificate in logs.
func (r *Rotator) Name() string { return "serving-cert::secret/" + r.config.Secret.String() }

// CurrentCertKeyContent returns the serving certificate and its key.
func (r *Rotator) CurrentCertKeyContent() (cert, key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	served := r.bundle.serving
	if served == nil {
		served = r.created
	}
	return served.certPEM, served.keyPEM
}

// AddListener adds a listener, which is notified of each new certificate.
func (r *Rotator) AddListener(listener dynamiccertificates.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, listener)
}

// RunOnce does nothing: the server calls it before it serves, and must not wait for
// the cluster. Run does all.
func (r *Rotator) RunOnce(context.Context) error { return nil }

// Ready returns what the server waits for, until it serves a certificate that
// kube-apiserver trusts.
func (r *Rotator) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bundle.serving != nil || r.insecure {
		return nil
	}
	return fmt.Errorf("no certificate that kube-apiserver trusts yet, will retry: %w", r.err)
}

// Run renews the certificate until the context ends. The number of workers is part
// of the interface and has no effect; there is one.
func (r *Rotator) Run(ctx context.Context, _ int) {
	logger := klog.FromContext(ctx).WithValues("secret", r.config.Secret, "apiService", r.config.APIService)
	r.loop.Run(klog.NewContext(ctx, logger))
}

// sync brings the APIService, the Secret and the certificate that is served up to
// date, in this order. It returns when to call it again, or a conflict if another
// replica has written the Secret or the APIService. Only Run calls it.
func (r *Rotator) sync(ctx context.Context) (next time.Time, err error) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = err
	}()
	// The Secret is read before the APIService, so the CA of a certificate that a
	// replica has stored is in the caBundle.
	secret, secretErr := reconcile.ReadSecret(ctx, r.client, r.config.Secret, secretPurpose)
	service, err := r.readAPIService(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	if r.setInsecure(ctx, service.insecure) {
		// There is no caBundle that could say which certificate is trusted, and
		// kube-apiserver would reject one.
		return now.Add(time.Hour), nil
	}
	if secretErr != nil {
		return time.Time{}, secretErr
	}

	r.trust.observe(service.cas, now)
	served := r.served()
	stored, ignored := r.policy.readBundle(secret, service.cas, now)
	if stored.serving == nil && r.policy.verify(served.serving, now) == nil {
		stored = served
	}
	wanted, next, err := r.policy.advance(stored, now, r.trust.trustedSince, r.create)
	if err != nil {
		return time.Time{}, err
	}
	cas, change := r.trust.want(wanted.cas(), r.policy.grace(), now)
	err = r.writeAPIService(ctx, service, cas)
	if err == nil {
		err = r.writeSecret(ctx, secret, wanted.data(cas), ignored)
	}
	if err != nil {
		// What is stored can still be served.
		if stored.serving != nil && contains(service.cas, stored.serving.ca) {
			r.serve(stored, service.cas, now)
		}
		return time.Time{}, err
	}
	settled := r.serve(wanted, cas, now)
	r.mu.Lock()
	r.created = nil
	r.mu.Unlock()
	return earliest(next, change, settled), nil
}

// create returns the certificate that is not in the Secret yet, or creates one.
func (r *Rotator) create(now time.Time) (*pair, error) {
	if r.policy.verify(r.created, now) == nil {
		return r.created, nil
	}
	created, err := r.policy.create(now)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.created = created
	return created, nil
}

func (r *Rotator) served() bundle {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bundle
}

// serve serves the certificate in the bundle. But while kube-apiserver, which trusts
// cas, has no time to load its CA, a certificate that is served and verifies is kept;
// serve then returns when to call it again.
func (r *Rotator) serve(b bundle, cas []*x509.Certificate, now time.Time) (settled time.Time) {
	served := r.served().serving
	changed := served == nil || !served.cert.Equal(b.serving.cert)
	if changed && r.policy.verify(served, now) == nil && contains(cas, served.ca) {
		since := r.trust.trustedSince(b.serving.ca)
		if since.IsZero() {
			since = now
		}
		if until := earliest(since.Add(r.policy.settle()), served.cert.NotAfter); now.Before(until) {
			b.serving, changed, settled = served, false, until
		}
	}
	r.mu.Lock()
	r.bundle = b
	listeners := r.listeners
	r.mu.Unlock()
	if changed {
		for _, listener := range listeners {
			listener.Enqueue()
		}
	}
	return settled
}

// setInsecure records whether the APIService has insecureSkipTLSVerify, and logs when
// that is set. It returns it.
func (r *Rotator) setInsecure(ctx context.Context, insecure bool) bool {
	r.mu.Lock()
	set := insecure && !r.insecure
	r.insecure = insecure
	r.mu.Unlock()
	if set {
		klog.FromContext(ctx).Info("The APIService has insecureSkipTLSVerify: kube-apiserver does not verify the serving certificate, and accepts no caBundle")
	}
	return insecure
}
