// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// syncTimeout bounds the wait for a cluster that does not answer.
const syncTimeout = 15 * time.Second

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

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

// Rotator creates and renews the certificate. Each replica runs one: a write names
// the version of the Secret that it is based on, and after a conflict the replica
// reads again.
type Rotator struct {
	config     Config
	policy     policy
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	secret     cache.SharedInformer
	apiService cache.SharedInformer
	// changed has a token if the Secret or the APIService has changed.
	changed chan struct{}
	// syncing serializes calls of sync.
	syncing sync.Mutex
	// trustedSince is, by raw certificate of a CA, since when the APIService has had
	// it.
	trustedSince map[string]time.Time
	insecure     bool // the APIService has insecureSkipTLSVerify

	mu sync.Mutex
	// bundle is what is served: at first a temporary certificate.
	bundle bundle
	// ready is set when the cluster has accepted what is served.
	ready     bool
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
		changed: make(chan struct{}, 1),
		err:     errors.New("the cluster has not answered yet"),
	}
	var err error
	if r.bundle.serving, err = r.policy.create(time.Now()); err != nil {
		return nil, fmt.Errorf("create a temporary serving certificate: %w", err)
	}
	secrets, services := client.CoreV1().Secrets(config.Secret.Namespace), dynamic.Resource(apiServices)
	r.secret = informer(&corev1.Secret{}, config.Secret.Name, client,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return secrets.List(ctx, o) },
		secrets.Watch)
	r.apiService = informer(&unstructured.Unstructured{}, config.APIService, dynamic,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return services.List(ctx, o) },
		services.Watch)
	for _, informer := range []cache.SharedInformer{r.secret, r.apiService} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { r.wake() },
			UpdateFunc: func(any, any) { r.wake() },
			DeleteFunc: func(any) { r.wake() },
		}); err != nil {
			return nil, fmt.Errorf("watch for changes of the serving certificate: %w", err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(r.watchFailed); err != nil {
			return nil, fmt.Errorf("watch for changes of the serving certificate: %w", err)
		}
	}
	return r, nil
}

// informer returns an informer of one object.
func informer(example runtime.Object, name string, client any, list cache.ListWithContextFunc, watcher cache.WatchFuncWithContext) cache.SharedInformer {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return watcher(ctx, o)
		},
	}, client), example, 0)
}

func (r *Rotator) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Name identifies the certificate in logs.
func (r *Rotator) Name() string { return "serving-cert::secret/" + r.config.Secret.String() }

// CurrentCertKeyContent returns the serving certificate and its key.
func (r *Rotator) CurrentCertKeyContent() (cert, key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bundle.serving.certPEM, r.bundle.serving.keyPEM
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

// Ready returns what the server waits for, until it serves a certificate that the
// cluster has accepted.
func (r *Rotator) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready {
		return nil
	}
	return fmt.Errorf("no certificate that kube-apiserver trusts yet, will retry: %w", r.err)
}

// watchFailed reports the error of a watch. While the server waits for its first
// certificate, sync has the same error, and reports it once.
func (r *Rotator) watchFailed(ctx context.Context, reflector *cache.Reflector, err error) {
	if r.Ready() == nil {
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// Run renews the certificate until the context ends. The number of workers is part
// of the interface and has no effect; there is one.
func (r *Rotator) Run(ctx context.Context, _ int) {
	logger := klog.FromContext(ctx).WithValues("secret", r.config.Secret, "apiService", r.config.APIService)
	ctx = klog.NewContext(ctx, logger)
	var informers sync.WaitGroup
	defer informers.Wait()
	informers.Go(func() { r.secret.RunWithContext(ctx) })
	informers.Go(func() { r.apiService.RunWithContext(ctx) })

	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
	retry, reported := backoff, ""
	for {
		next, err := r.sync(ctx)
		if err != nil {
			next = time.Now().Add(retry.Step())
			if ctx.Err() == nil && err.Error() != reported {
				reported = err.Error()
				logger.Error(err, "Failed to update the serving certificate, will retry until it succeeds")
			}
		} else {
			retry, reported = backoff, ""
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// sync brings the Secret, the APIService and the certificate that is served up to
// date, in this order. It returns when to call it again.
func (r *Rotator) sync(ctx context.Context) (next time.Time, err error) {
	r.syncing.Lock()
	defer r.syncing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = err
	}()
	for {
		// The APIService is read before the Secret and written after it, so that it
		// cannot get a CA that another replica has replaced in between.
		service, err := r.readAPIService(ctx)
		if err != nil {
			return time.Time{}, err
		}
		r.noteInsecure(ctx, service.insecure)
		stored, next, err := r.syncSecret(ctx, service.trustedSince)
		if err != nil {
			return time.Time{}, err
		}
		err = r.updateCABundle(ctx, service, stored)
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil || !service.trustedSince(stored.serving.ca).IsZero() {
			r.serve(stored)
		}
		return next, err
	}
}

// syncSecret brings the Secret up to date and returns its content.
func (r *Rotator) syncSecret(ctx context.Context, trustedSince func(*x509.Certificate) time.Time) (bundle, time.Time, error) {
	secrets := r.client.CoreV1().Secrets(r.config.Secret.Namespace)
	for {
		secret, err := secrets.Get(ctx, r.config.Secret.Name, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if err != nil && !absent {
			return bundle{}, time.Time{}, fmt.Errorf("read the secret of the serving certificate: %w", err)
		}
		if absent {
			secret = &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: r.config.Secret.Name, Namespace: r.config.Secret.Namespace},
				Type:       corev1.SecretTypeTLS,
			}
		}
		// If the Secret was deleted or damaged, the certificate in use is still valid.
		wanted, next, err := r.policy.advance(readBundle(secret).repaired(r.current()), time.Now(), trustedSince)
		if err != nil {
			return bundle{}, time.Time{}, err
		}
		data := wanted.data()
		if maps.EqualFunc(secret.Data, data, bytes.Equal) {
			return wanted, next, nil
		}
		secret.Data = data
		if absent {
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			klog.FromContext(ctx).Info("Updated the secret of the serving certificate", "nextChange", next)
			return wanted, next, nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return bundle{}, time.Time{}, fmt.Errorf("write the secret of the serving certificate: %w", err)
		}
		// Another replica has written it.
	}
}

func (r *Rotator) current() bundle {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bundle
}

func (r *Rotator) serve(b bundle) {
	r.mu.Lock()
	changed := r.bundle.serving == nil || !bytes.Equal(r.bundle.serving.certPEM, b.serving.certPEM)
	r.bundle, r.ready = b, true
	listeners := r.listeners
	r.mu.Unlock()
	if changed {
		for _, listener := range listeners {
			listener.Enqueue()
		}
	}
}

// noteInsecure logs when insecureSkipTLSVerify is set.
func (r *Rotator) noteInsecure(ctx context.Context, insecure bool) {
	if insecure && !r.insecure {
		klog.FromContext(ctx).Info("The APIService has insecureSkipTLSVerify: kube-apiserver does not verify the serving certificate, and accepts no caBundle")
	}
	r.insecure = insecure
}

// serviceTrust is what the APIService trusts.
type serviceTrust struct {
	caBundle        []byte
	insecure        bool // insecureSkipTLSVerify
	resourceVersion string
	since           map[string]time.Time
}

// trustedSince returns since when the APIService has had a CA, or zero.
func (t serviceTrust) trustedSince(ca *x509.Certificate) time.Time { return t.since[string(ca.Raw)] }

func (r *Rotator) readAPIService(ctx context.Context) (serviceTrust, error) {
	service, err := r.dynamic.Resource(apiServices).Get(ctx, r.config.APIService, metav1.GetOptions{})
	if err != nil {
		return serviceTrust{}, fmt.Errorf("read the APIService: %w", err)
	}
	// A caBundle that cannot be read trusts no CA, and is replaced.
	encoded, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	text, _ := base64.StdEncoding.DecodeString(encoded)
	cas, _ := certutil.ParseCertsPEM(text)
	since := make(map[string]time.Time, len(cas))
	for _, ca := range cas {
		if since[string(ca.Raw)] = r.trustedSince[string(ca.Raw)]; since[string(ca.Raw)].IsZero() {
			since[string(ca.Raw)] = time.Now()
		}
	}
	r.trustedSince = since
	insecure, _, _ := unstructured.NestedBool(service.Object, "spec", "insecureSkipTLSVerify")
	return serviceTrust{text, insecure, service.GetResourceVersion(), since}, nil
}

// updateCABundle writes the CAs into the APIService. It returns a conflict if the
// APIService has changed since it was read.
func (r *Rotator) updateCABundle(ctx context.Context, service serviceTrust, b bundle) error {
	want := b.trustPEM()
	// With insecureSkipTLSVerify, kube-apiserver rejects a caBundle.
	if service.insecure || bytes.Equal(service.caBundle, want) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": service.resourceVersion},
		"spec":     map[string]any{"caBundle": want},
	})
	if err != nil {
		return fmt.Errorf("encode the CA bundle: %w", err)
	}
	_, err = r.dynamic.Resource(apiServices).Patch(ctx, r.config.APIService, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "borough-apiserver"})
	if err != nil {
		return fmt.Errorf("write the CA bundle of the APIService: %w", err)
	}
	klog.FromContext(ctx).Info("Updated the caBundle of the APIService", "certificates", len(b.trusted))
	return nil
}
